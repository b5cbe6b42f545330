# SPDX-License-Identifier: Apache-2.0
assay_test(unit_foreign
  SOURCES foreign_csv_test.cpp foreign_tools_test.cpp
  LINKS assay_foreign assay_verdict LABELS unit)
