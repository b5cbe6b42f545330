# SPDX-License-Identifier: Apache-2.0
# What drives GPUs: compiled against the CUDA Toolkit for assay, against the emulation in tests.
set(ASSAY_CUDA_DEVICE cuda_backend cuda_device cuda_memory cuda_memory_ops cuda_train_ops cublas_lt gemm)
list(TRANSFORM ASSAY_CUDA_DEVICE PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
list(TRANSFORM ASSAY_CUDA_DEVICE APPEND .cpp)
