// SPDX-License-Identifier: Apache-2.0
#include "kernels/rmsnorm.hpp"

#include "kernels/cuda/numbers.cuh"

namespace assay::kernels::cuda {
namespace {

constexpr unsigned most_threads = 256, unit = 8;  ///< elements of a 16-byte access of bf16

/// A block per row, eight columns per thread and turn. `row` in shared memory spares a second read.
template <typename T>
__global__ void __launch_bounds__(most_threads)
    forward_kernel(const T* x, const T* add, T* sum, T* y, float* rstd, unsigned width) {
  ASSAY_DYNAMIC_SHARED(float, row);  // [width]
  __shared__ float room[most_threads / 32];
  const std::size_t at = std::size_t{blockIdx.x} * width;
  float squares = 0;
  for (unsigned i = threadIdx.x * unit; i < width; i += blockDim.x * unit) {
    float v[unit];
    load8(x + at + i, v);
    if (add != nullptr) {
      float a[unit];
      load8(add + at + i, a);
      ASSAY_UNROLL
      for (unsigned k = 0; k < unit; ++k) v[k] += a[k];
      as_stored(sum, v);
      store8(sum + at + i, v);
    }
    ASSAY_UNROLL
    for (unsigned k = 0; k < unit; ++k) squares += v[k] * v[k];
    store8(row + i, v);
  }
  const float scale = 1.0f / sqrtf(block_sum(squares, room) / static_cast<float>(width) + rmsnorm_epsilon);
  if (threadIdx.x == 0) rstd[blockIdx.x] = scale;
  for (unsigned i = threadIdx.x * unit; i < width; i += blockDim.x * unit) {
    float v[unit];
    load8(row + i, v);
    ASSAY_UNROLL
    for (unsigned k = 0; k < unit; ++k) v[k] *= scale;
    store8(y + at + i, v);
  }
}

/// A block per row; the second read of dy and y meets the cache.
template <typename T>
__global__ void __launch_bounds__(most_threads)
    backward_kernel(const T* dy, const T* y, const float* rstd, T* dx, unsigned width) {
  __shared__ float room[most_threads / 32];
  const std::size_t at = std::size_t{blockIdx.x} * width;
  float dot = 0;
  for (unsigned i = threadIdx.x * unit; i < width; i += blockDim.x * unit) {
    float d[unit], v[unit];
    load8(dy + at + i, d);
    load8(y + at + i, v);
    ASSAY_UNROLL
    for (unsigned k = 0; k < unit; ++k) dot += d[k] * v[k];
  }
  const float mean = block_sum(dot, room) / static_cast<float>(width), scale = rstd[blockIdx.x];
  for (unsigned i = threadIdx.x * unit; i < width; i += blockDim.x * unit) {
    float d[unit], v[unit], to[unit];
    load8(dy + at + i, d);
    load8(y + at + i, v);
    load8(dx + at + i, to);
    ASSAY_UNROLL
    for (unsigned k = 0; k < unit; ++k) to[k] += scale * (d[k] - v[k] * mean);
    store8(dx + at + i, to);
  }
}

/// Whole warps, as many as a row keeps busy.
unsigned threads_for(std::size_t width) {
  const std::size_t wanted = (width / unit + 31) / 32 * 32;
  return static_cast<unsigned>(wanted < most_threads ? wanted : most_threads);
}

template <typename T>
void forward(const T* x, const T* add, T* sum, T* y, float* rstd, std::size_t rows, std::size_t width,
             void* stream) {
  const std::size_t bytes = width * sizeof(float);
  cudaFuncSetAttribute(forward_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       static_cast<int>(bytes));
  launch(forward_kernel<T>, dim3(static_cast<unsigned>(rows)), dim3(threads_for(width)), bytes, stream, x,
         add, sum, y, rstd, static_cast<unsigned>(width));
}
template <typename T>
void backward(const T* dy, const T* y, const float* rstd, T* dx, std::size_t rows, std::size_t width,
              void* stream) {
  launch(backward_kernel<T>, dim3(static_cast<unsigned>(rows)), dim3(threads_for(width)), 0, stream, dy, y,
         rstd, dx, static_cast<unsigned>(width));
}

}  // namespace

void rmsnorm_forward(const float* x, const float* add, float* sum, float* y, float* rstd, std::size_t rows,
                     std::size_t width, void* stream) {
  forward(x, add, sum, y, rstd, rows, width, stream);
}
void rmsnorm_forward(const Bfloat* x, const Bfloat* add, Bfloat* sum, Bfloat* y, float* rstd,
                     std::size_t rows, std::size_t width, void* stream) {
  forward(x, add, sum, y, rstd, rows, width, stream);
}
void rmsnorm_backward(const float* dy, const float* y, const float* rstd, float* dx, std::size_t rows,
                      std::size_t width, void* stream) {
  backward(dy, y, rstd, dx, rows, width, stream);
}
void rmsnorm_backward(const Bfloat* dy, const Bfloat* y, const float* rstd, Bfloat* dx, std::size_t rows,
                      std::size_t width, void* stream) {
  backward(dy, y, rstd, dx, rows, width, stream);
}

}  // namespace assay::kernels::cuda
