# SPDX-License-Identifier: Apache-2.0
assay_test(unit_comm SOURCES suites/pair_schedule_test.cpp workload/exact_values_test.cpp workload/collective_test.cpp
    suites/comm_plan_test.cpp suites/rails_test.cpp suites/pair_rounds_test.cpp suites/pair_sweep_test.cpp
    transport/ucx_path_test.cpp transport/ucx_communicator_test.cpp transport/gpu_links_test.cpp suites/congestion_canaries_test.cpp
  LINKS assay_suite_p2p assay_suite_allreduce assay_suite_congestion LABELS unit)
