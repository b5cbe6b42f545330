# The node-local suites: gemm and memory.
assay_test(unit_suites_node SOURCES suites/gemm_suite_test.cpp suites/gemm_choice_test.cpp suites/gemm_types_test.cpp suites/gemm_slow_test.cpp suites/verified_product_test.cpp
  suites/memory_suite_test.cpp suites/memory_slow_test.cpp suites/memory_gpu_test.cpp suites/memory_layout_test.cpp measure/fault_class_test.cpp suite/together_test.cpp
  LINKS assay_measure assay_suite_gemm assay_suite_memory LABELS unit)
# Its sources call things alike: suite(), bench(), plan_of().
set_target_properties(unit_suites_node PROPERTIES UNITY_BUILD OFF)
