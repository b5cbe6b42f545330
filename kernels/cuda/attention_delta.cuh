// SPDX-License-Identifier: Apache-2.0
// What the backward pass of attention needs of every query beside its lse.
#pragma once

#include "kernels/attention.hpp"
#include "kernels/cuda/numbers.cuh"

namespace assay::kernels::cuda {

inline constexpr unsigned delta_threads = 128;

/// delta[pair * length + i] = out[i, :] . dout[i, :] of the pair's head; a warp per row.
template <typename T>
__global__ void __launch_bounds__(delta_threads)
    delta_kernel(AttentionShape s, const T* out, const T* dout, float* delta) {
  const std::size_t item = (std::size_t{blockIdx.x} * delta_threads + threadIdx.x) / 32;
  if (item >= s.pairs() * s.length) return;
  const std::size_t pair = item / s.length, row = item % s.length;
  const std::size_t at = (pair / s.heads * s.length + row) * s.width() + pair % s.heads * s.depth;
  float sum = 0;
  for (unsigned d = lane(); d < s.depth; d += 32) sum += value_of(out[at + d]) * value_of(dout[at + d]);
  sum = warp_sum(sum);
  if (lane() == 0) delta[item] = sum;
}

template <typename T>
void attention_delta(const AttentionShape& shape, const T* out, const T* dout, float* delta, void* stream) {
  launch(delta_kernel<T>, dim3(blocks_for(shape.pairs() * shape.length * 32, delta_threads)),
         dim3(delta_threads), 0, stream, shape, out, dout, delta);
}

}  // namespace assay::kernels::cuda
