# SPDX-License-Identifier: Apache-2.0
assay_test(unit_comm SOURCES ${CMAKE_CURRENT_LIST_DIR}/pair_schedule_test.cpp ${CMAKE_CURRENT_LIST_DIR}/exact_values_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/comm_plan_test.cpp ${CMAKE_CURRENT_LIST_DIR}/ucx_path_test.cpp
  LINKS assay_suite_p2p assay_suite_allreduce LABELS unit)
