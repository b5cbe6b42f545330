# SPDX-License-Identifier: Apache-2.0
assay_test(unit_gpu SOURCES telemetry/nvml_test.cpp topology/gpu_place_test.cpp verdict/gpu_test.cpp telemetry/telemetry_test.cpp topology_tree.cpp
  LINKS assay_run assay_topology assay_verdict nlohmann_json::nlohmann_json LABELS unit)
add_dependencies(unit_gpu fake_nvml fake_nvml_old)
target_compile_definitions(unit_gpu PRIVATE FAKE_NVML="$<TARGET_FILE:fake_nvml>" FAKE_NVML_OLD="$<TARGET_FILE:fake_nvml_old>"
  TWO_GPUS="${PROJECT_SOURCE_DIR}/tests/fake_gpus/two_h100.json")

# Two kinds of GPUs in one program.
assay_library(assay_device_sample SOURCES ${PROJECT_SOURCE_DIR}/tests/sample_backend/sample_backend.cpp LINKS assay_device assay_transport)
target_include_directories(assay_device_sample PUBLIC ${PROJECT_SOURCE_DIR}/tests/sample_backend)
add_library(assay_transport_sample INTERFACE)
assay_generate_backend_list(two_backends cuda sample)
assay_test(unit_backends SOURCES device/backends_test.cpp LINKS two_backends assay_topology LABELS unit)
