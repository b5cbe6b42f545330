// SPDX-License-Identifier: Apache-2.0
// Private to src/device/cuda.
#pragma once

#include <cuda_runtime.h>

#include <memory>

#include "device/train_ops.hpp"

namespace assay::cuda {

/// Operations on the GPU of `stream`, queued there, in fp32 or bf16. The stream outlives the result. Throws
/// Error(device).
std::unique_ptr<TrainOps> make_cuda_train_ops(cudaStream_t stream);

}  // namespace assay::cuda
