# SPDX-License-Identifier: Apache-2.0
assay_test(unit_faults SOURCES config/fault_spec_test.cpp run/injector_test.cpp
  transport/faulty_communicator_test.cpp LINKS assay_run LABELS unit)
