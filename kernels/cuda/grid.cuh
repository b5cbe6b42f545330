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

/// The sum over all threads of a block of that size, in its thread 0: one atomic for each block, since those
/// of all warps on one address would be a part of the time.
template <unsigned threads, typename T>
__device__ T block_sum(T mine) {
  __shared__ T sums[threads / 32];
  ASSAY_UNROLL
  for (int distance = 16; distance > 0; distance /= 2) mine += __shfl_xor_sync(0xffffffffu, mine, distance);
  if (lane() == 0) sums[threadIdx.x / 32] = mine;
  __syncthreads();
  for (unsigned warp = 1; threadIdx.x == 0 && warp < threads / 32; ++warp) mine += sums[warp];
  return mine;
}

}  // namespace assay::kernels::cuda
