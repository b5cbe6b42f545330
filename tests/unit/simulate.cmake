# SPDX-License-Identifier: Apache-2.0
assay_test(unit_simulate
  SOURCES simulate_draw_test.cpp simulate_fault_test.cpp simulate_machine_test.cpp simulate_run_test.cpp simulate_bisection_test.cpp simulate_drift_test.cpp
  LINKS assay_simulate assay_measure LABELS unit)
