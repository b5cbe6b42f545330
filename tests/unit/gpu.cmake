# SPDX-License-Identifier: Apache-2.0
assay_test(unit_gpu SOURCES gpu_nvml_test.cpp gpu_place_test.cpp gpu_verdict_test.cpp gpu_telemetry_test.cpp topology_tree.cpp
  LINKS assay_run assay_topology assay_verdict nlohmann_json::nlohmann_json LABELS unit)
add_dependencies(unit_gpu fake_nvml fake_nvml_old)
target_compile_definitions(unit_gpu PRIVATE FAKE_NVML="$<TARGET_FILE:fake_nvml>" FAKE_NVML_OLD="$<TARGET_FILE:fake_nvml_old>"
  TWO_GPUS="${PROJECT_SOURCE_DIR}/tests/fake_nvml/two_gpus.json")
