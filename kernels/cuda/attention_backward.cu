// SPDX-License-Identifier: Apache-2.0
// Attention in bf16 on tensor cores, backward. Two kernels that each have one owner per result: no atomics,
// the same bits every time.
#include "kernels/cuda/attention_delta.cuh"
#include "kernels/cuda/attention_hopper.cuh"
#include "kernels/cuda/attention_tiles.cuh"

namespace assay::kernels::cuda {
namespace {

/// Rows that a block owns, 16 per warp, and rows of the other side that it looks at together.
constexpr unsigned owned = 16 * attention_warps;
template <unsigned D>
constexpr unsigned others = D == 128 ? 32 : 64;

/// Block (x, y): dk and dv of a tile of keys of pair y, over the queries from there on. Scores are
/// transposed, [keys, queries], so that a warp has whole rows of what it sums.
template <unsigned D>
__global__ void __launch_bounds__(attention_threads, 2)
    keys_kernel(AttentionShape shape, const Bfloat* qkv, const float* lse, const float* delta,
                const Bfloat* dout, Bfloat* dqkv) {
  constexpr unsigned N = others<D>;
  ASSAY_DYNAMIC_SHARED(Bfloat, shared);
  Bfloat *k = shared, *v = k + owned * D, *tiles = v + owned * D;  // then two stages of queries and dout
  auto* floats = reinterpret_cast<float*>(tiles + 4 * N * D);      // and of their lse and delta
  const Head head(shape, blockIdx.y);
  const unsigned first = blockIdx.x * owned, length = shape.length, begin = first / N * N;
  const Bfloat *q_from = qkv + head.packed, *d_from = dout + head.single;
  const float *lse_from = lse + std::size_t{blockIdx.y} * length,
              *delta_from = delta + std::size_t{blockIdx.y} * length;
  const unsigned row = threadIdx.x / 32 * 16;
  const float scale = 1.0f / sqrtf(static_cast<float>(D));
  float dk[1][D / 8][4], dv[1][D / 8][4];
  clear(dk);
  clear(dv);

  const auto load = [&](unsigned query) {
    const unsigned stage = query / N % 2;
    load_tile<D, N>(tiles + stage * 2 * N * D, q_from, head.step, query, length);
    load_tile<D, N>(tiles + (stage * 2 + 1) * N * D, d_from, head.width, query, length);
    load_floats<N>(floats + stage * 2 * N, lse_from, query, length);
    load_floats<N>(floats + (stage * 2 + 1) * N, delta_from, query, length);
  };
  load_tile<D, owned>(k, q_from + head.width, head.step, first, length);
  load_tile<D, owned>(v, q_from + 2 * head.width, head.step, first, length);
  load(begin);
  commit_copies();
  for (unsigned query = begin; query < length; query += N) {
    if (query + N < length) load(query + N);
    commit_copies();
    wait_copies<1>();
    __syncthreads();
    const unsigned stage = query / N % 2;
    const Bfloat *q = tiles + stage * 2 * N * D, *d = q + N * D;
    const float *lse_of = floats + stage * 2 * N, *delta_of = lse_of + N;
    float s[1][N / 8][4], ds[1][N / 8][4];
    clear(s);
    clear(ds);
    multiply_rows<D, 1, N>(s, k, row, q);
    multiply_rows<D, 1, N>(ds, v, row, d);
    weigh_keys<N>(s, scale, first + row, query, length, lse_of);
    to_scores<N>(ds, s, [&](unsigned n, unsigned i) { return delta_of[column(n, i)]; });
    unsigned left[1][N / 16][4];
    as_left<1, N>(left, s);
    multiply_columns<D, 1, N>(dv, left, d);
    as_left<1, N>(left, ds);
    multiply_columns<D, 1, N>(dk, left, q);
    __syncthreads();
  }
  wait_copies<0>();
  const float scales[1][2] = {{scale, scale}}, ones[1][2] = {{1, 1}};
  store_rows<D, 1>(dqkv + head.packed + head.width, head.step, first, length, dk, scales, k, row);
  store_rows<D, 1>(dqkv + head.packed + 2 * head.width, head.step, first, length, dv, ones, v, row);
}

/// Block (x, y): dq of a tile of queries of pair y, over the keys up to there, the longest first.
template <unsigned D>
__global__ void __launch_bounds__(attention_threads, 2)
    queries_kernel(AttentionShape shape, const Bfloat* qkv, const float* lse, const float* delta,
                   const Bfloat* dout, Bfloat* dqkv) {
  constexpr unsigned N = others<D>;
  ASSAY_DYNAMIC_SHARED(Bfloat, shared);
  Bfloat *q = shared, *d = q + owned * D, *tiles = d + owned * D;  // then two stages of keys and values
  const Head head(shape, blockIdx.y);
  const unsigned first = (gridDim.x - 1 - blockIdx.x) * owned, length = static_cast<unsigned>(shape.length);
  const unsigned end = first + owned < length ? first + owned : length;
  const Bfloat *from = qkv + head.packed, *k_from = from + head.width, *v_from = k_from + head.width;
  const unsigned row = threadIdx.x / 32 * 16;
  const float scale = 1.0f / sqrtf(static_cast<float>(D));
  float dq[1][D / 8][4], lse2[2], delta_of[2];
  clear(dq);
  load_queries(lse2, delta_of, lse, delta, first + row, length);

  const auto load = [&](unsigned key) {
    Bfloat* to = tiles + key / N % 2 * (2 * N * D);
    load_tile<D, N>(to, k_from, head.step, key, length);
    load_tile<D, N>(to + N * D, v_from, head.step, key, length);
  };
  load_tile<D, owned>(q, from, head.step, first, length);
  load_tile<D, owned>(d, dout + head.single, head.width, first, length);
  load(0);
  commit_copies();
  for (unsigned key = 0; key < end; key += N) {
    if (key + N < end) load(key + N);
    commit_copies();
    wait_copies<1>();
    __syncthreads();
    const Bfloat *k = tiles + key / N % 2 * (2 * N * D), *v = k + N * D;
    float s[1][N / 8][4], ds[1][N / 8][4];
    clear(s);
    clear(ds);
    multiply_rows<D, 1, N>(s, q, row, k);
    multiply_rows<D, 1, N>(ds, d, row, v);
    weigh_queries<N>(s, scale, first + row, key, lse2);
    to_scores<N>(ds, s, [&](unsigned, unsigned i) { return delta_of[i / 2]; });
    unsigned left[1][N / 16][4];
    as_left<1, N>(left, ds);
    multiply_columns<D, 1, N>(dq, left, k);
    __syncthreads();
  }
  wait_copies<0>();
  const float scales[1][2] = {{scale, scale}};
  store_rows<D, 1>(dqkv + head.packed, head.step, first, length, dq, scales, q, row);
}

template <unsigned D, typename Kernel>
void start(Kernel* kernel, const AttentionShape& shape, const Bfloat* qkv, const float* lse,
           const float* delta, const Bfloat* dout, Bfloat* dqkv, void* stream) {
  constexpr std::size_t bytes =
      (2 * owned + 4 * others<D>)*D * sizeof(Bfloat) + 4 * others<D> * sizeof(float);
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  launch(kernel, dim3(blocks_for(shape.length, owned), static_cast<unsigned>(shape.pairs())),
         dim3(attention_threads), bytes, stream, shape, qkv, lse, delta, dout, dqkv);
}

}  // namespace

void attention_backward(const AttentionShape& shape, const Bfloat* qkv, const Bfloat* out, const float* lse,
                        const Bfloat* dout, Bfloat* dqkv, float* delta, void* scores, void* stream) {
  attention_delta(shape, out, dout, delta, stream);
  if (hopper_attention_backward(shape, qkv, lse, delta, dout, dqkv, scores, stream)) return;
  by_depth(shape.depth, [&](auto depth) {
    constexpr unsigned D = decltype(depth)::value;
    start<D>(keys_kernel<D>, shape, qkv, lse, delta, dout, dqkv, stream);
    start<D>(queries_kernel<D>, shape, qkv, lse, delta, dout, dqkv, stream);
  });
}

}  // namespace assay::kernels::cuda
