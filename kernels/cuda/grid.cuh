// SPDX-License-Identifier: Apache-2.0
// How many blocks a kernel that loops over its data is started with.
#pragma once

#include "kernels/cuda/launch.cuh"

namespace assay::kernels::cuda {

/// Multiprocessors of the current GPU; 1 where it is unknown.
inline unsigned multiprocessors() {
  int device = 0, count = 0;
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device) != cudaSuccess || count < 1)
    return 1;
  return static_cast<unsigned>(count);
}

/// All blocks that fit the GPU at once, so that a loop over the data has no tail of half-empty waves; fewer
/// where `useful` have something to do, and never none.
template <typename... Params>
unsigned resident_blocks(void (*kernel)(Params...), unsigned threads, std::size_t shared_bytes,
                         std::size_t useful) {
  int per_multiprocessor = 0;
  if (cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_multiprocessor, kernel, static_cast<int>(threads),
                                                    shared_bytes) != cudaSuccess ||
      per_multiprocessor < 1)
    per_multiprocessor = 1;
  const std::size_t fit = std::size_t{multiprocessors()} * static_cast<unsigned>(per_multiprocessor);
  return static_cast<unsigned>(useful == 0 ? 1 : useful < fit ? useful : fit);
}

/// The index of this thread among all of the grid, and their number: never 32 bits wide.
__device__ inline std::size_t global_thread() { return std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ inline std::size_t global_threads() { return std::size_t{gridDim.x} * blockDim.x; }

}  // namespace assay::kernels::cuda
