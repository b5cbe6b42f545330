# SPDX-License-Identifier: Apache-2.0
assay_test(unit_compare
  SOURCES verdict/compare_test.cpp verdict/composition_test.cpp verdict/history_nights_test.cpp verdict/history_test.cpp verdict/history_parts_test.cpp verdict/baseline_test.cpp verdict/baseline_retest_test.cpp verdict/baseline_totals_test.cpp verdict/join_test.cpp
  LINKS assay_verdict assay_simulate assay_report nlohmann_json::nlohmann_json
  LABELS unit LONG)
