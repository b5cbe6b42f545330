// SPDX-License-Identifier: Apache-2.0
#include "kernels/cross_entropy.hpp"

#include "kernels/cuda/numbers.cuh"

namespace assay::kernels::cuda {
namespace {

constexpr unsigned most_threads = 512, unit = 8;

/// The largest value of some logits, and the sum of e^(logit - largest). A NaN among them makes the sum one.
struct Softmax {
  float most = -INFINITY, sum = 0;

  __device__ void add(const float (&v)[unit]) {
    float top = most;
    ASSAY_UNROLL
    for (unsigned k = 0; k < unit; ++k) top = fmaxf(top, v[k]);
    if (top > most) {
      sum *= expf(most - top);
      most = top;
    }
    ASSAY_UNROLL
    for (unsigned k = 0; k < unit; ++k) sum += expf(v[k] - most);
  }
  __device__ void add(const Softmax& other) {
    const float top = fmaxf(most, other.most);
    if (top == -INFINITY) return;
    sum = sum * expf(most - top) + other.sum * expf(other.most - top);
    most = top;
  }
};

/// Of all threads of the block, the same bits in each.
__device__ Softmax over_block(Softmax mine, Softmax* room) {
  ASSAY_UNROLL
  for (int distance = 16; distance > 0; distance /= 2) {
    // Lower lane first on both sides: the same sum in the same order.
    const Softmax other{__shfl_xor_sync(all_lanes, mine.most, distance),
                        __shfl_xor_sync(all_lanes, mine.sum, distance)};
    const bool lower = (lane() & static_cast<unsigned>(distance)) == 0;
    Softmax both = lower ? mine : other;
    both.add(lower ? other : mine);
    mine = both;
  }
  if (lane() == 0) room[threadIdx.x / 32] = mine;
  __syncthreads();
  Softmax all = room[0];
  for (unsigned w = 1; w < blockDim.x / 32; ++w) all.add(room[w]);
  return all;
}

/// A block per row.
template <typename T>
__global__ void __launch_bounds__(most_threads)
    cross_entropy_kernel(T* logits, const std::int32_t* targets, float* loss, float scale, unsigned width) {
  __shared__ float room_bytes[2 * most_threads / 32];
  auto* room = reinterpret_cast<Softmax*>(room_bytes);
  T* row = logits + std::size_t{blockIdx.x} * width;
  const std::int32_t target = targets[blockIdx.x];
  float v[unit];
  if (target < 0) {
    ASSAY_UNROLL
    for (unsigned k = 0; k < unit; ++k) v[k] = 0;
    for (unsigned i = threadIdx.x * unit; i < width; i += blockDim.x * unit) store8(row + i, v);
    if (threadIdx.x == 0) loss[blockIdx.x] = 0;
    return;
  }
  Softmax mine;
  for (unsigned i = threadIdx.x * unit; i < width; i += blockDim.x * unit) {
    load8(row + i, v);
    mine.add(v);
  }
  const float wanted = value_of(row[target]);
  const Softmax all = over_block(mine, room);  // its barrier: all threads have read `wanted`
  const float factor = scale / all.sum;
  if (threadIdx.x == 0) loss[blockIdx.x] = logf(all.sum) + all.most - wanted;
  for (unsigned i = threadIdx.x * unit; i < width; i += blockDim.x * unit) {
    load8(row + i, v);
    ASSAY_UNROLL
    for (unsigned k = 0; k < unit; ++k)
      v[k] = expf(v[k] - all.most) * factor - (i + k == static_cast<unsigned>(target) ? scale : 0.0f);
    store8(row + i, v);
  }
}

template <typename T>
void run(T* logits, const std::int32_t* targets, float* loss, float scale, std::size_t rows,
         std::size_t width, void* stream) {
  const std::size_t wanted = (width / unit + 31) / 32 * 32;
  const auto threads = static_cast<unsigned>(wanted < most_threads ? wanted : most_threads);
  launch(cross_entropy_kernel<T>, dim3(static_cast<unsigned>(rows)), dim3(threads), 0, stream, logits,
         targets, loss, scale, static_cast<unsigned>(width));
}

}  // namespace

void cross_entropy(float* logits, const std::int32_t* targets, float* loss, float scale, std::size_t rows,
                   std::size_t width, void* stream) {
  run(logits, targets, loss, scale, rows, width, stream);
}
void cross_entropy(Bfloat* logits, const std::int32_t* targets, float* loss, float scale, std::size_t rows,
                   std::size_t width, void* stream) {
  run(logits, targets, loss, scale, rows, width, stream);
}

}  // namespace assay::kernels::cuda
