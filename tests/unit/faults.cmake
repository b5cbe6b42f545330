# SPDX-License-Identifier: Apache-2.0
assay_test(unit_faults SOURCES ${CMAKE_CURRENT_LIST_DIR}/fault_spec_test.cpp ${CMAKE_CURRENT_LIST_DIR}/injector_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/faulty_communicator_test.cpp LINKS assay_run LABELS unit)
