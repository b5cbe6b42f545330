# SPDX-License-Identifier: Apache-2.0
if(NOT TARGET results_example)
  assay_library(results_example COLD SOURCES ${PROJECT_SOURCE_DIR}/tests/results/example_results.cpp
    ${PROJECT_SOURCE_DIR}/tests/results/difference.cpp LINKS assay_results)
endif()
assay_test(unit_results
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/results_test.cpp ${CMAKE_CURRENT_LIST_DIR}/results_damage_test.cpp
          ${CMAKE_CURRENT_LIST_DIR}/results_export_test.cpp ${CMAKE_CURRENT_LIST_DIR}/results_resume_test.cpp
  LINKS results_example assay_results assay_hdf5 LABELS unit SHARDS 2)
