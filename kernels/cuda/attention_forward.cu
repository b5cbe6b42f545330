// SPDX-License-Identifier: Apache-2.0
// Attention in bf16 on tensor cores, forward: softmax as the keys go by (Milakov and Gimelshein 2018), tiles
// of keys and values copied while the ones before are multiplied.
#include "kernels/cuda/attention_hopper.cuh"
#include "kernels/cuda/attention_tiles.cuh"

namespace assay::kernels::cuda {
namespace {

/// A warp has 16 * slabs queries; a deeper head leaves registers for fewer keys at a time.
constexpr unsigned slabs = 2, queries = 16 * slabs * attention_warps;
template <unsigned D>
constexpr unsigned keys = D == 128 ? 32 : 64;

/// Block (x, y): a tile of queries of pair y, the longest first.
template <unsigned D>
__global__ void __launch_bounds__(attention_threads, 2)
    forward_kernel(AttentionShape shape, const Bfloat* qkv, Bfloat* out, float* lse) {
  constexpr unsigned N = keys<D>;
  ASSAY_DYNAMIC_SHARED(Bfloat, shared);
  Bfloat *q = shared, *tiles = q + queries * D;  // then two stages of keys and values
  const Head head(shape, blockIdx.y);
  const unsigned first = (gridDim.x - 1 - blockIdx.x) * queries, length = static_cast<unsigned>(shape.length);
  const Bfloat *base = qkv + head.packed, *k = base + head.width, *v = k + head.width;
  const unsigned row = threadIdx.x / 32 * 16 * slabs;
  const unsigned end = first + queries < length ? first + queries : length;
  const float scale = log2_e / sqrtf(static_cast<float>(D));  // scores in powers of 2
  float total[slabs][D / 8][4];
  Running<slabs> run;
  clear(total);

  const auto load = [&](unsigned key) {
    Bfloat* to = tiles + key / N % 2 * (2 * N * D);
    load_tile<D, N>(to, k, head.step, key, length);
    load_tile<D, N>(to + N * D, v, head.step, key, length);
  };
  load_tile<D, queries>(q, base, head.step, first, length);
  load(0);
  commit_copies();
  for (unsigned key = 0; key < end; key += N) {
    if (key + N < end) load(key + N);
    commit_copies();
    wait_copies<1>();
    __syncthreads();
    // A warp whose queries all lie before these keys has nothing to do.
    if (key <= first + row + 16 * slabs - 1) {
      const Bfloat* tile = tiles + key / N % 2 * (2 * N * D);
      float s[slabs][N / 8][4];
      unsigned weights[slabs][N / 16][4];
      clear(s);
      multiply_rows<D, slabs, N>(s, q, row, tile);
      float shrink[slabs][2];
      weigh<slabs, N>(s, shrink, run, scale, first + row, key);
      multiply_each(total, shrink);
      as_left<slabs, N>(weights, s);
      multiply_columns<D, slabs, N>(total, weights, tile + N * D);
    }
    __syncthreads();
  }
  wait_copies<0>();

  float factor[slabs][2];
  finish(factor, run, scale, lse + std::size_t{blockIdx.y} * length, first + row, length);
  store_rows<D, slabs>(out + head.single, head.width, first, length, total, factor, q, row);
}

}  // namespace

void attention_forward(const AttentionShape& shape, const Bfloat* qkv, Bfloat* out, float* lse,
                       void* stream) {
  if (hopper_attention_forward(shape, qkv, out, lse, stream)) return;
  by_depth(shape.depth, [&](auto depth) {
    constexpr unsigned D = decltype(depth)::value;
    constexpr std::size_t bytes = (queries + 4 * keys<D>)*D * sizeof(Bfloat);
    cudaFuncSetAttribute(forward_kernel<D>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         static_cast<int>(bytes));
    launch(forward_kernel<D>, dim3(blocks_for(shape.length, queries), static_cast<unsigned>(shape.pairs())),
           dim3(attention_threads), bytes, stream, shape, qkv, out, lse);
  });
}

}  // namespace assay::kernels::cuda
