# SPDX-License-Identifier: Apache-2.0
assay_test(unit_config SOURCES base/units_test.cpp base/clock_test.cpp base/text_test.cpp base/glob_test.cpp config/option_test.cpp config/config_test.cpp config/toml_options_test.cpp
  LINKS assay_config assay_base fmt::fmt LABELS unit)
assay_test(unit_cli SOURCES cli/parser_test.cpp cli/run_report_test.cpp suites/described_test.cpp cli/confine_test.cpp base/confined_test.cpp base/child_process_test.cpp LINKS assay_cli assay_suites LABELS unit)
if(SECCOMP_FOUND)
  target_compile_definitions(unit_cli PRIVATE ASSAY_HAS_SECCOMP)
  target_include_directories(unit_cli SYSTEM PRIVATE ${SECCOMP_INCLUDE_DIRS})
  target_link_libraries(unit_cli PRIVATE ${SECCOMP_LIBRARIES})
endif()
