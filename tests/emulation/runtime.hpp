// SPDX-License-Identifier: Apache-2.0
// What the parts of the emulated runtime share.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "cuda_runtime.h"

namespace emulation {

/// Of each thread, as in CUDA.
inline thread_local int current_device = 0;
inline thread_local cudaError_t last_error = cudaSuccess;

/// Kernels, copies, events and waits on streams that are over.
inline std::atomic<std::uint64_t> pieces_done = 0;

/// Remembers what cudaGetLastError says next.
cudaError_t keep(cudaError_t error);
bool is_device(int device);
/// See Gpu::fault.
bool has_fault(int device, const char* fault);

/// What a stream was asked to do while it was captured.
struct Graph {
  std::vector<std::function<std::function<bool()>()>> nodes;
};
/// Where a stream keeps what it is asked, while it is captured; null of the default stream.
std::unique_ptr<Graph>* recording_of(cudaStream_t stream);

}  // namespace emulation
