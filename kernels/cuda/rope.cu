// SPDX-License-Identifier: Apache-2.0
#include "kernels/rope.hpp"

#include "kernels/cuda/numbers.cuh"

namespace assay::kernels::cuda {
namespace {

constexpr unsigned threads = 256, unit = 8;

/// Eight pairs (j, j + depth/2) of one head per thread; queries and keys lie side by side, so they are 2 *
/// heads heads in a row.
template <typename T>
__global__ void __launch_bounds__(threads)
    rope_kernel(RopeShape shape, const float* cosine, const float* sine, T* qkv, std::size_t items,
                float sign) {
  const std::size_t i = std::size_t{blockIdx.x} * threads + threadIdx.x;
  if (i >= items) return;
  const std::size_t half = shape.depth / 2, units = half / unit, heads = 2 * shape.heads;
  const std::size_t row = i / (heads * units), head = i / units % heads, j = i % units * unit;
  T* x = qkv + row * 3 * shape.heads * shape.depth + head * shape.depth + j;
  const std::size_t angle = row % shape.length * half + j;
  float a[unit], b[unit], c[unit], s[unit], first[unit], second[unit];
  load8(x, a);
  load8(x + half, b);
  load8(cosine + angle, c);
  load8(sine + angle, s);
  ASSAY_UNROLL
  for (unsigned k = 0; k < unit; ++k) {
    first[k] = a[k] * c[k] - sign * b[k] * s[k];
    second[k] = sign * a[k] * s[k] + b[k] * c[k];
  }
  store8(x, first);
  store8(x + half, second);
}

template <typename T>
void turn(const RopeShape& shape, const float* cosine, const float* sine, T* qkv, std::size_t rows,
          bool inverse, void* stream) {
  const std::size_t items = rows * 2 * shape.heads * (shape.depth / 2 / unit);
  if (items == 0) return;
  launch(rope_kernel<T>, dim3(blocks_for(items, threads)), dim3(threads), 0, stream, shape, cosine, sine, qkv,
         items, inverse ? -1.0f : 1.0f);
}

}  // namespace

void rope(const RopeShape& shape, const float* cosine, const float* sine, float* qkv, std::size_t rows,
          bool inverse, void* stream) {
  turn(shape, cosine, sine, qkv, rows, inverse, stream);
}
void rope(const RopeShape& shape, const float* cosine, const float* sine, Bfloat* qkv, std::size_t rows,
          bool inverse, void* stream) {
  turn(shape, cosine, sine, qkv, rows, inverse, stream);
}

}  // namespace assay::kernels::cuda
