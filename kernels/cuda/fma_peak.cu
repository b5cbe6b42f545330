// SPDX-License-Identifier: Apache-2.0
#include "kernels/fma_peak.hpp"

#include "kernels/cuda/grid.cuh"

namespace assay::kernels::cuda {
namespace {

constexpr unsigned threads = 256;
constexpr int chains =
    8;  ///< independent multiply-adds of a thread: with 16 warps and more of them, no latency is left
constexpr unsigned unrolled = 16;

__device__ float square_from(float x, float c) { return __fmaf_rn(-x, x, c); }
__device__ double square_from(double x, double c) { return __fma_rn(-x, x, c); }

/// The chaotic map x -> c - x x of the host's kernel (kernels/host/fma_peak_body.inc): mantissas stay random
/// for ever. A sum that escaped means broken arithmetic; it is counted, and so is no rate.
template <typename T>
__global__ void __launch_bounds__(threads)
    burn_kernel(std::uint64_t rounds, T c, unsigned long long* escaped) {
  T x[chains];
  ASSAY_UNROLL
  for (int i = 0; i < chains; ++i)
    x[i] = static_cast<T>(0.003) + static_cast<T>(0.01) * static_cast<T>(i - 4) +
           static_cast<T>(0.0001) * static_cast<T>(threadIdx.x + 7 * (blockIdx.x % 64));
  for (std::uint64_t r = 0; r < rounds; ++r) {
    ASSAY_UNROLL
    for (unsigned u = 0; u < unrolled; ++u) {
      ASSAY_UNROLL
      for (int i = 0; i < chains; ++i) x[i] = square_from(x[i], c);
    }
  }
  T total = 0;
  ASSAY_UNROLL
  for (int i = 0; i < chains; ++i) total += x[i];
  if (!(total > static_cast<T>(-2 * chains) && total < static_cast<T>(2 * chains))) atomicAdd(escaped, 1ULL);
}

template <typename T>
double burn(std::uint64_t rounds, unsigned long long* escaped, void* stream) {
  const unsigned blocks = resident_blocks(burn_kernel<T>, threads, 0, ~std::size_t{0});
  launch(burn_kernel<T>, dim3(blocks), dim3(threads), 0, stream, rounds, static_cast<T>(1.9), escaped);
  return 2.0 * chains * unrolled * static_cast<double>(rounds) * static_cast<double>(threads) * blocks;
}

}  // namespace

double fma_burn_fp32(std::uint64_t rounds, unsigned long long* escaped, void* stream) {
  return burn<float>(rounds, escaped, stream);
}
double fma_burn_fp64(std::uint64_t rounds, unsigned long long* escaped, void* stream) {
  return burn<double>(rounds, escaped, stream);
}

}  // namespace assay::kernels::cuda
