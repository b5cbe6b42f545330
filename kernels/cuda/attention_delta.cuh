// SPDX-License-Identifier: Apache-2.0
// What the backward pass of attention needs of every query beside its lse.
#pragma once

#include "kernels/attention.hpp"
#include "kernels/cuda/numbers.cuh"

namespace assay::kernels::cuda {

inline constexpr unsigned delta_threads = 128, delta_lanes = 8;

/// delta[pair * length + i] = out[i, :] . dout[i, :] of the pair's head; eight lanes per row.
template <typename T>
__global__ void __launch_bounds__(delta_threads)
    delta_kernel(AttentionShape s, const T* out, const T* dout, float* delta) {
  const std::size_t item = (std::size_t{blockIdx.x} * delta_threads + threadIdx.x) / delta_lanes;
  const std::size_t pair = item / s.length, row = item % s.length;
  const std::size_t at = (pair / s.heads * s.length + row) * s.width() + pair % s.heads * s.depth;
  const bool active = item < s.pairs() * s.length;
  float sum = 0;
  for (std::size_t d = threadIdx.x % delta_lanes * 8; active && d < s.depth; d += delta_lanes * 8) {
    float x[8], y[8];
    load8(out + at + d, x);
    load8(dout + at + d, y);
    ASSAY_UNROLL
    for (unsigned i = 0; i < 8; ++i) sum += x[i] * y[i];
  }
  ASSAY_UNROLL
  for (unsigned distance = delta_lanes / 2; distance > 0; distance /= 2)
    sum += __shfl_xor_sync(all_lanes, sum, distance);
  if (active && threadIdx.x % delta_lanes == 0) delta[item] = sum;
}

template <typename T>
void attention_delta(const AttentionShape& shape, const T* out, const T* dout, float* delta, void* stream) {
  launch(delta_kernel<T>, dim3(blocks_for(shape.pairs() * shape.length * delta_lanes, delta_threads)),
         dim3(delta_threads), 0, stream, shape, out, dout, delta);
}

}  // namespace assay::kernels::cuda
