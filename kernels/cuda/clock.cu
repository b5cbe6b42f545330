// SPDX-License-Identifier: Apache-2.0
#include "kernels/clock.hpp"

#include "kernels/cuda/launch.cuh"

namespace assay::kernels::cuda {
namespace {

/// One thread a block. Of several blocks on a multiprocessor the last one stays.
__global__ void clocks_kernel(ClockPair* out, std::size_t count) {
  const std::size_t at = multiprocessor();
  if (at >= count) return;
  const ClockPair now{static_cast<std::uint64_t>(clock64()), global_timer_ns()};
  out[at] = now;
}

}  // namespace

void read_clocks(ClockPair* out, std::size_t count, void* stream) {
  cudaMemsetAsync(out, 0, count * sizeof(ClockPair), static_cast<cudaStream_t>(stream));
  launch(clocks_kernel, dim3(static_cast<unsigned>(count)), dim3(1), 0, stream, out, count);
}

}  // namespace assay::kernels::cuda
