// SPDX-License-Identifier: Apache-2.0
#include "kernels/relu_squared.hpp"

#include "kernels/cuda/numbers.cuh"

namespace assay::kernels::cuda {
namespace {

constexpr unsigned threads = 256, unit = 8;

/// Of a NaN a NaN, as x * x is.
__device__ inline float positive(float x) { return x < 0 ? 0.0f : x; }

template <typename T>
__global__ void __launch_bounds__(threads) forward_kernel(const T* x, T* y, std::size_t count) {
  const std::size_t i = (std::size_t{blockIdx.x} * threads + threadIdx.x) * unit;
  if (i + unit <= count) {
    float v[unit];
    load8(x + i, v);
    ASSAY_UNROLL
    for (unsigned k = 0; k < unit; ++k) v[k] = positive(v[k]) * positive(v[k]);
    store8(y + i, v);
    return;
  }
  for (std::size_t k = i; k < count; ++k) put(y[k], positive(value_of(x[k])) * positive(value_of(x[k])));
}

template <typename T>
__global__ void __launch_bounds__(threads)
    backward_kernel(const T* x, const T* dy, T* dx, std::size_t count) {
  const std::size_t i = (std::size_t{blockIdx.x} * threads + threadIdx.x) * unit;
  if (i + unit <= count) {
    float v[unit], d[unit];
    load8(x + i, v);
    load8(dy + i, d);
    ASSAY_UNROLL
    for (unsigned k = 0; k < unit; ++k) v[k] = 2 * positive(v[k]) * d[k];
    store8(dx + i, v);
    return;
  }
  for (std::size_t k = i; k < count; ++k) put(dx[k], 2 * positive(value_of(x[k])) * value_of(dy[k]));
}

unsigned blocks(std::size_t count) { return blocks_for((count + unit - 1) / unit, threads); }

}  // namespace

void relu_squared_forward(const float* x, float* y, std::size_t count, void* stream) {
  if (count > 0) launch(forward_kernel<float>, dim3(blocks(count)), dim3(threads), 0, stream, x, y, count);
}
void relu_squared_forward(const Bfloat* x, Bfloat* y, std::size_t count, void* stream) {
  if (count > 0) launch(forward_kernel<Bfloat>, dim3(blocks(count)), dim3(threads), 0, stream, x, y, count);
}
void relu_squared_backward(const float* x, const float* dy, float* dx, std::size_t count, void* stream) {
  if (count > 0)
    launch(backward_kernel<float>, dim3(blocks(count)), dim3(threads), 0, stream, x, dy, dx, count);
}
void relu_squared_backward(const Bfloat* x, const Bfloat* dy, Bfloat* dx, std::size_t count, void* stream) {
  if (count > 0)
    launch(backward_kernel<Bfloat>, dim3(blocks(count)), dim3(threads), 0, stream, x, dy, dx, count);
}

}  // namespace assay::kernels::cuda
