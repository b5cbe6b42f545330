// SPDX-License-Identifier: Apache-2.0
// Attention in fp32, without tensor cores: for checks, not for speed. attention_forward.cu and
// attention_backward.cu are for bf16.
#include "kernels/attention.hpp"

#include "kernels/cuda/attention_delta.cuh"

namespace assay::kernels::cuda {
namespace {

/// Rows of a tile; 8 warps have 4 of them each, and a lane one row of the other tile.
constexpr unsigned tile = 32, threads = 256, rows_each = 4,
                   parts = 4;  ///< parts: columns of a lane, 32 apart
constexpr std::size_t most_depth = 32 * parts;

/// One head's columns of a packed buffer: row r is at data[r * step].
struct Columns {
  const float* data;
  std::size_t step;
};

/// to[tile, depth], `pitch` apart = rows from `first` on, zero beyond `length`.
__device__ void load_tile(float* to, unsigned pitch, const Columns& from, std::size_t first,
                          std::size_t length, unsigned depth) {
  for (unsigned i = threadIdx.x; i < tile * depth; i += threads) {
    const unsigned row = i / depth, d = i % depth;
    to[row * pitch + d] = first + row < length ? from.data[(first + row) * from.step + d] : 0.0f;
  }
}

__device__ float dot(const float* a, const float* b, unsigned depth) {
  float sum = 0;
  for (unsigned d = 0; d < depth; ++d) sum += a[d] * b[d];
  return sum;
}

/// total[d] += sum over lanes j of weight_j * rows[j, d], for this lane's columns d.
__device__ void add_weighted(float (&total)[parts], float weight, const float* rows, unsigned pitch,
                             unsigned depth) {
  for (unsigned j = 0; j < tile; ++j) {
    const float w = __shfl_sync(all_lanes, weight, static_cast<int>(j));
    ASSAY_UNROLL
    for (unsigned c = 0; c < parts; ++c)
      if (lane() + 32 * c < depth) total[c] += w * rows[j * pitch + lane() + 32 * c];
  }
}

__device__ void store_row(float* to, const float (&values)[parts], float factor, unsigned depth) {
  ASSAY_UNROLL
  for (unsigned c = 0; c < parts; ++c)
    if (lane() + 32 * c < depth) to[lane() + 32 * c] = values[c] * factor;
}

/// Block (x, y): queries of tile x of pair y, over the tiles of keys up to theirs.
__global__ void __launch_bounds__(threads)
    forward_kernel(AttentionShape s, const float* qkv, float* out, float* lse) {
  ASSAY_DYNAMIC_SHARED(float, shared);
  const auto depth = static_cast<unsigned>(s.depth);
  const unsigned pitch = depth + 1;
  float *q = shared, *k = q + tile * depth, *v = k + tile * pitch;
  const std::size_t width = s.width(), step = 3 * width, b = blockIdx.y / s.heads, h = blockIdx.y % s.heads;
  const std::size_t first = std::size_t{blockIdx.x} * tile;
  const float* base = qkv + b * s.length * step + h * s.depth;
  const float scale = 1.0f / sqrtf(static_cast<float>(s.depth));
  const unsigned mine = threadIdx.x / 32 * rows_each;
  float top[rows_each], sum[rows_each], total[rows_each][parts] = {};
  for (unsigned r = 0; r < rows_each; ++r) top[r] = -INFINITY, sum[r] = 0;
  load_tile(q, depth, {base, step}, first, s.length, depth);
  for (std::size_t other = 0; other <= first; other += tile) {
    __syncthreads();
    load_tile(k, pitch, {base + width, step}, other, s.length, depth);
    load_tile(v, depth, {base + 2 * width, step}, other, s.length, depth);
    __syncthreads();
    ASSAY_UNROLL
    for (unsigned r = 0; r < rows_each; ++r) {
      const bool seen = other + lane() <= first + mine + r;
      const float score = seen ? dot(q + (mine + r) * depth, k + lane() * pitch, depth) * scale : -INFINITY;
      const float above = fmaxf(top[r], warp_max(score)), factor = expf(top[r] - above);
      const float weight = seen ? expf(score - above) : 0.0f;
      top[r] = above;
      sum[r] = sum[r] * factor + warp_sum(weight);
      ASSAY_UNROLL
      for (unsigned c = 0; c < parts; ++c) total[r][c] *= factor;
      add_weighted(total[r], weight, v, depth, depth);
    }
  }
  ASSAY_UNROLL
  for (unsigned r = 0; r < rows_each; ++r) {
    const std::size_t row = first + mine + r;
    if (row >= s.length) break;
    store_row(out + (b * s.length + row) * width + h * s.depth, total[r], 1.0f / sum[r], depth);
    if (lane() == 0) lse[blockIdx.y * s.length + row] = top[r] + logf(sum[r]);
  }
}

/// Block (x, y): tile x of pair y. Of keys: dk and dv, over the tiles of queries from theirs on. Of queries:
/// dq, over the tiles of keys up to theirs.
template <bool of_keys>
__global__ void __launch_bounds__(threads)
    backward_kernel(AttentionShape s, const float* qkv, const float* lse, const float* delta,
                    const float* dout, float* dqkv) {
  ASSAY_DYNAMIC_SHARED(float, shared);
  const auto depth = static_cast<unsigned>(s.depth);
  const unsigned pitch = depth + 1;
  float *own = shared, *own_value = own + tile * depth, *far = own_value + tile * depth,
        *far_value = far + tile * pitch;
  const std::size_t width = s.width(), step = 3 * width, b = blockIdx.y / s.heads, h = blockIdx.y % s.heads;
  const std::size_t first = std::size_t{blockIdx.x} * tile, at = b * s.length * step + h * s.depth;
  const Columns q{qkv + at, step}, k{qkv + at + width, step}, v{qkv + at + 2 * width, step};
  const Columns d{dout + b * s.length * width + h * s.depth, width};
  const float scale = 1.0f / sqrtf(static_cast<float>(s.depth));
  const float *lse_of = lse + blockIdx.y * s.length, *delta_of = delta + blockIdx.y * s.length;
  const unsigned mine = threadIdx.x / 32 * rows_each;
  float to_score[rows_each][parts] = {}, to_value[rows_each][parts] = {};
  load_tile(own, depth, of_keys ? k : q, first, s.length, depth);
  load_tile(own_value, depth, of_keys ? v : d, first, s.length, depth);
  const std::size_t begin = of_keys ? first : 0, end = of_keys ? s.length : first + tile;
  for (std::size_t other = begin; other < end; other += tile) {
    __syncthreads();
    load_tile(far, pitch, of_keys ? q : k, other, s.length, depth);
    load_tile(far_value, pitch, of_keys ? d : v, other, s.length, depth);
    __syncthreads();
    ASSAY_UNROLL
    for (unsigned r = 0; r < rows_each; ++r) {
      const std::size_t row = first + mine + r, column = other + lane();
      const std::size_t query = of_keys ? column : row, key = of_keys ? row : column;
      const bool seen = query < s.length && key <= query;
      const float score = dot(own + (mine + r) * depth, far + lane() * pitch, depth) * scale;
      const float weight = seen ? expf(score - lse_of[query]) : 0.0f;
      const float dvalue = dot(own_value + (mine + r) * depth, far_value + lane() * pitch, depth);
      const float dscore = seen ? weight * (dvalue - delta_of[query]) * scale : 0.0f;
      add_weighted(to_score[r], dscore, far, pitch, depth);
      if (of_keys) add_weighted(to_value[r], weight, far_value, pitch, depth);
    }
  }
  ASSAY_UNROLL
  for (unsigned r = 0; r < rows_each; ++r) {
    const std::size_t row = first + mine + r;
    if (row >= s.length) break;
    float* to = dqkv + at + row * step;
    store_row(to + (of_keys ? width : 0), to_score[r], 1.0f, depth);
    if (of_keys) store_row(to + 2 * width, to_value[r], 1.0f, depth);
  }
}

template <typename Kernel>
std::size_t allow_shared(Kernel* kernel, const AttentionShape& shape, unsigned tiles) {
  const std::size_t bytes = tiles * tile * (shape.depth + 1) * sizeof(float);
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  return bytes;
}

dim3 grid_of(const AttentionShape& shape) {
  return dim3(blocks_for(shape.length, tile), static_cast<unsigned>(shape.pairs()));
}

}  // namespace

bool attention_takes(std::size_t depth, bool bf16) noexcept {
  return bf16 ? depth == 32 || depth == 64 || depth == 128 : depth % 16 == 0 && depth <= most_depth;
}

void attention_forward(const AttentionShape& shape, const float* qkv, float* out, float* lse, void* stream) {
  launch(forward_kernel, grid_of(shape), dim3(threads), allow_shared(forward_kernel, shape, 3), stream, shape,
         qkv, out, lse);
}

void attention_backward(const AttentionShape& shape, const float* qkv, const float* out, const float* lse,
                        const float* dout, float* dqkv, float* delta, void* /*scores*/, void* stream) {
  attention_delta(shape, out, dout, delta, stream);
  launch(backward_kernel<true>, grid_of(shape), dim3(threads), allow_shared(backward_kernel<true>, shape, 4),
         stream, shape, qkv, lse, static_cast<const float*>(delta), dout, dqkv);
  launch(backward_kernel<false>, grid_of(shape), dim3(threads),
         allow_shared(backward_kernel<false>, shape, 4), stream, shape, qkv, lse,
         static_cast<const float*>(delta), dout, dqkv);
}

}  // namespace assay::kernels::cuda
