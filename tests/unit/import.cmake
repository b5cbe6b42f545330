# SPDX-License-Identifier: Apache-2.0
assay_test(unit_import
  SOURCES import/counts_test.cpp import/csv_test.cpp import/nccl_test.cpp import/osu_test.cpp import/parts_test.cpp import/text_test.cpp
          import/tools_test.cpp
  LINKS assay_import assay_verdict LABELS unit)
