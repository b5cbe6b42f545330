# SPDX-License-Identifier: Apache-2.0
assay_test(unit_config SOURCES units_test.cpp glob_test.cpp option_test.cpp config_test.cpp toml_options_test.cpp
  LINKS assay_config assay_base fmt::fmt LABELS unit)
assay_test(unit_cli SOURCES cli_parser_test.cpp suites_described_test.cpp confine_test.cpp confined_test.cpp LINKS assay_cli assay_suites LABELS unit)
if(SECCOMP_FOUND)
  target_compile_definitions(unit_cli PRIVATE ASSAY_HAS_SECCOMP)
  target_include_directories(unit_cli SYSTEM PRIVATE ${SECCOMP_INCLUDE_DIRS})
  target_link_libraries(unit_cli PRIVATE ${SECCOMP_LIBRARIES})
endif()
