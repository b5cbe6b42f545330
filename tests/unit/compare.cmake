# SPDX-License-Identifier: Apache-2.0
assay_test(unit_compare
  SOURCES compare_test.cpp history_test.cpp baseline_test.cpp
  LINKS assay_verdict assay_report nlohmann_json::nlohmann_json
  LABELS unit)
