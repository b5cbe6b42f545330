// SPDX-License-Identifier: Apache-2.0
#include "kernels/sum_squares.hpp"

#include "kernels/cuda/numbers.cuh"

namespace assay::kernels::cuda {
namespace {

constexpr unsigned threads = 128, lanes = 16;  ///< sums of a block that run side by side, as on the host

/// A group of 16 threads per block of 4096. A square of floats is exact in fp64, so fusing changes nothing.
__global__ void __launch_bounds__(threads)
    sum_squares_kernel(const float* data, std::size_t count, double* parts) {
  const std::size_t block = (std::size_t{blockIdx.x} * threads + threadIdx.x) / lanes;
  const unsigned j = threadIdx.x % lanes;
  const std::size_t begin = block * sum_squares_block, left = begin < count ? count - begin : 0;
  const std::size_t n = left < sum_squares_block ? left : sum_squares_block, whole = n / lanes * lanes;
  double sum = 0;
  for (std::size_t i = 0; i < whole; i += lanes) {
    const auto v = static_cast<double>(data[begin + i + j]);
    sum += v * v;
  }
  if (j == 0)
    for (std::size_t i = whole; i < n; ++i)
      sum += static_cast<double>(data[begin + i]) * static_cast<double>(data[begin + i]);
  ASSAY_UNROLL
  for (unsigned distance = lanes / 2; distance > 0; distance /= 2) {
    const double other = __shfl_down_sync(all_lanes, sum, distance, lanes);
    if (j < distance) sum += other;
  }
  if (j == 0 && n > 0) parts[block] = sum;
}

}  // namespace

void sum_squares(const float* data, std::size_t count, double* parts, void* stream) {
  const std::size_t blocks = (count + sum_squares_block - 1) / sum_squares_block;
  if (blocks > 0)
    launch(sum_squares_kernel, dim3(blocks_for(blocks * lanes, threads)), dim3(threads), 0, stream, data,
           count, parts);
}

}  // namespace assay::kernels::cuda
