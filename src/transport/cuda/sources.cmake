# SPDX-License-Identifier: Apache-2.0
# Transports between GPUs. assay links them compiled against the CUDA Toolkit, tests against its emulation.
set(ASSAY_TRANSPORT_CUDA gpu_transports.cpp nccl_library.cpp nccl_communicator.cpp nccl_setup.cpp nccl_device_collectives.cpp staged_communicator.cpp peer_memory.cpp)
list(TRANSFORM ASSAY_TRANSPORT_CUDA PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
