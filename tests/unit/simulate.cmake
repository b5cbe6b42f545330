# SPDX-License-Identifier: Apache-2.0
assay_test(unit_simulate
  SOURCES simulate/draw_test.cpp simulate/fault_test.cpp simulate/machine_test.cpp simulate/run_test.cpp simulate/bisection_test.cpp simulate/drift_test.cpp
  LINKS assay_simulate assay_measure LABELS unit LONG)
