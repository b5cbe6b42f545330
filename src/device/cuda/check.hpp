// SPDX-License-Identifier: Apache-2.0
// Private to what uses CUDA: errors of its C interfaces become exceptions.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "base/error.hpp"

namespace assay::cuda {

/// Throws Error(resource) when memory ran out or others keep the GPU to themselves, and Error(device) for all
/// else. CUDA forgets an error that is told here: the next check_launch would tell it under another name.
inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();
  throw Error(error == cudaErrorMemoryAllocation || error == cudaErrorDevicesUnavailable ? ErrorKind::resource
                                                                                         : ErrorKind::device,
              std::string(what) + ": " + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) + ")");
}

/// Of kernels that were started.
inline void check_launch(const char* what) { check(cudaGetLastError(), what); }

/// The answer of cudaStreamQuery or cudaEventQuery. That work is not over is no error to be met again.
inline cudaError_t queried(cudaError_t state) noexcept {
  if (state == cudaErrorNotReady) cudaGetLastError();
  return state;
}

}  // namespace assay::cuda
