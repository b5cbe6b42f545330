# SPDX-License-Identifier: Apache-2.0
if(NOT TARGET results_example)
  assay_library(results_example COLD SOURCES ${PROJECT_SOURCE_DIR}/tests/results/example_results.cpp
    ${PROJECT_SOURCE_DIR}/tests/results/difference.cpp LINKS assay_results)
endif()
assay_test(unit_results
  SOURCES results/file_test.cpp results/damage_test.cpp
          results/export_test.cpp results/packed_test.cpp results/values_test.cpp results/resume_test.cpp
          results/carry_test.cpp results/facts_test.cpp results/spool_test.cpp results/partial_test.cpp
          results/json_io_test.cpp
  LINKS results_example assay_results assay_hdf5 LABELS unit SHARDS 2)
# As on Arm. What is compiled before its first line has the other char.
assay_test(unit_unsigned_char SOURCES results/unsigned_char_test.cpp ${PROJECT_SOURCE_DIR}/src/results/text.cpp
  LINKS assay_base LABELS unit)
target_compile_options(unit_unsigned_char PRIVATE -funsigned-char)
set_target_properties(unit_unsigned_char PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
