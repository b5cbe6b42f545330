# SPDX-License-Identifier: Apache-2.0
# The kernels for GPUs, one file per contract header in kernels/. nvcc compiles them for assay, the host's compiler for their
# emulation in tests.
set(ASSAY_CUDA_KERNELS cache clock digest stream fill payload exact copy chase fma_peak pattern onchip embedding rmsnorm rope attention attention_forward
  attention_backward attention_hopper relu_squared cross_entropy adamw sum_squares)
list(TRANSFORM ASSAY_CUDA_KERNELS PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
list(TRANSFORM ASSAY_CUDA_KERNELS APPEND .cu)
