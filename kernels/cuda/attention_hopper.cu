// SPDX-License-Identifier: Apache-2.0
// The same algorithms as attention_forward.cu and attention_backward.cu, by blocks of two warp groups that
// have 64 rows each. Weights are computed while the tensor cores work on the next product of the group. The
// backward pass computes gradients of scores once: the kernel for keys and values keeps them for the one for
// queries, which takes five products instead of seven.
#include "kernels/cuda/attention_hopper.cuh"

#include "kernels/cuda/attention_tiles.cuh"
#include "kernels/cuda/wgmma.cuh"

namespace assay::kernels::cuda {

#if defined(ASSAY_SM90A) && !defined(ASSAY_CUDA_EMULATION)

namespace {

constexpr unsigned threads = 256, owned = 128;  ///< rows of a block

/// Keys of a step of the forward pass; rows of the other side in a step of the backward pass.
template <unsigned D>
constexpr unsigned keys = D == 128 ? 128 : 64;
constexpr unsigned others = 64;
constexpr unsigned stages = 3;  ///< before, now, next: a group may be a step behind the other

/// Starts to copy rows [first, first + rows) of a head, `step` apart, into panels; zeros beyond `length`.
template <unsigned D, unsigned rows>
__device__ inline void load_panels(Bfloat* to, const Bfloat* from, unsigned step, unsigned first,
                                   unsigned length) {
  constexpr unsigned pieces = D / 8;
  static_assert(rows * pieces % threads == 0);
  ASSAY_UNROLL
  for (unsigned i = 0; i < rows * pieces; i += threads) {
    const unsigned row = (i + threadIdx.x) / pieces, piece = (i + threadIdx.x) % pieces;
    const bool valid = first + row < length;
    copy_async_16(to + panel_place<rows>(row, piece),
                  from + std::size_t{valid ? first + row : 0} * step + piece * 8, valid);
  }
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

constexpr unsigned side = attention_tile;

/// From one lane, so that the compiler knows it to be the same for all.
__device__ inline unsigned group_of_warp() { return __shfl_sync(all_lanes, threadIdx.x / 128, 0); }

/// Starts c[64, N] = a b^T: rows [row, row + 64) of panels a of `owned` rows, all N rows of panels b, D
/// elements each.
template <unsigned D, unsigned N>
__device__ inline void start_all_rows(float (&c)[N / 8][4], const Bfloat* a, unsigned row, const Bfloat* b) {
  const auto left = [&](unsigned k) {
    return matrix_at<owned>(a + k / 4 * (owned * 64) + row * 64 + k % 4 * 16);
  };
  const auto right = [&](unsigned k) { return matrix_at<N>(b + k / 4 * (N * 64) + k % 4 * 16); };
  start_rows<N, true>(c, left(0), right(0));
  ASSAY_UNROLL
  for (unsigned k = 1; k < D / 16; ++k) start_rows<N, false>(c, left(k), right(k));
}

/// Starts c[64, D] += a b: a [64, K] as fragments, b panels of K rows of D elements.
template <unsigned D, unsigned K>
__device__ inline void start_all_columns(float (&c)[D / 8][4], const unsigned (&a)[K / 16][4],
                                         const Bfloat* b) {
  ASSAY_UNROLL
  for (unsigned k = 0; k < K / 16; ++k) start_columns<D>(c, a[k], matrix_at<K>(b + k * 16 * 64));
}

/// Gradients of the scores of a warp's 16 keys (tile `key`) and N queries (tiles from `query` on, `count` in
/// all), given as left sides [keys, queries], go to memory as left sides [queries, keys].
template <unsigned N>
__device__ inline void keep_scores(uint4* kept, const unsigned (&a)[N / side][4], unsigned key,
                                   unsigned query, unsigned count) {
  ASSAY_UNROLL
  for (unsigned k = 0; k < N / side; ++k)
    if (query + k >= key && query + k < count)
      __stcs(kept + attention_tiles_before(query + k, key) * 32 + lane(),
             make_uint4(transposed(a[k][0]), transposed(a[k][2]), transposed(a[k][1]), transposed(a[k][3])));
}

/// The same tiles for a warp's 16 queries (tile `query`) and N keys (tiles from `key` on).
template <unsigned N>
__device__ inline void fetch_scores(unsigned (&a)[N / side][4], const uint4* kept, unsigned query,
                                    unsigned key, unsigned count) {
  ASSAY_UNROLL
  for (unsigned k = 0; k < N / side; ++k) {
    uint4 x = make_uint4(0, 0, 0, 0);
    if (key + k <= query && query < count)
      x = __ldcs(kept + attention_tiles_before(query, key + k) * 32 + lane());
    a[k][0] = x.x, a[k][1] = x.y, a[k][2] = x.z, a[k][3] = x.w;
  }
}

/// Adds what `others` queries from `query` on give the keys of a group (a warp's from `key` on): their tiles
/// are `q`, then dout. Keeps the gradients of their scores.
template <unsigned D>
__device__ inline void add_queries(float (&dk)[1][D / 8][4], float (&dv)[1][D / 8][4], const Bfloat* k,
                                   const Bfloat* v, const Bfloat* q, const float* lse_of,
                                   const float* delta_of, uint4* kept, unsigned group, float scale,
                                   unsigned key, unsigned query, unsigned length) {
  constexpr unsigned N = others;
  const Bfloat* d = q + N * D;
  float s[1][N / 8][4], ds[1][N / 8][4];
  begin_products();
  start_all_rows<D, N>(s[0], k, group, q);
  commit_products();
  begin_products();
  start_all_rows<D, N>(ds[0], v, group, d);
  commit_products();
  wait_products<1>(s[0]);
  weigh_keys<N>(s, scale, key, query, length, lse_of);
  unsigned weights[1][N / 16][4], gradients[1][N / 16][4];
  as_left<1, N>(weights, s);
  begin_products();
  start_all_columns<D, N>(dv[0], weights[0], d);
  commit_products();
  wait_products<1>(ds[0]);
  to_scores<N>(ds, s, [&](unsigned n, unsigned i) { return delta_of[column(n, i)]; });
  as_left<1, N>(gradients, ds);
  begin_products();
  start_all_columns<D, N>(dk[0], gradients[0], q);
  commit_products();
  keep_scores<N>(kept, gradients[0], key / side, query / side, (length + side - 1) / side);
  wait_products<0>(dv[0]);
  wait_products<0>(dk[0]);
}

/// Adds the values of all keys below `end`, a tile at a time, to the total of a group, of a block
/// with queries from `first` on. `next(key)` waits for the tile of these keys and starts to copy the one
/// after it. Scores of a tile are computed together with the values of the tile before; weights are computed
/// while the latter product goes on.
template <unsigned D, typename Next, typename TileOf>
__device__ inline void attend(float (&total)[1][D / 8][4], Running<1>& run, const Bfloat* q, const Next& next,
                              const TileOf& tile_of, unsigned group, unsigned first, float scale,
                              unsigned end) {
  constexpr unsigned N = keys<D>;
  const unsigned query = first + threadIdx.x / 32 * 16;
  float s[1][N / 8][4], shrink[1][2];
  unsigned weights[1][N / 16][4];
  const auto start_scores = [&](unsigned key) {
    begin_products();
    start_all_rows<D, N>(s[0], q, group, tile_of(key));
    commit_products();
  };
  const auto start_values = [&](unsigned key) {
    start_all_columns<D, N>(total[0], weights[0], tile_of(key) + N * D);
    commit_products();
  };
  next(0);
  start_scores(0);
  wait_products<0>(s[0]);
  weigh<1, N>(s, shrink, run, scale, query, 0);
  as_left<1, N>(weights, s);
  unsigned seen = 0;  // the keys whose weights are there
  for (unsigned key = N; key < end; key += N) {
    next(key);
    // A group whose queries all lie before these keys has nothing to do.
    if (N == owned || key <= first + group + 63) {
      start_scores(key);
      start_values(seen);
      wait_products<1>(s[0]);
      weigh<1, N>(s, shrink, run, scale, query, key);
      wait_products<0>(total[0]);
      multiply_each(total, shrink);
      as_left<1, N>(weights, s);
      seen = key;
    }
  }
  begin_products();
  start_values(seen);
  wait_products<0>(total[0]);
}

#endif

/// Block (x, y): a tile of queries of pair y, the longest first.
template <unsigned D>
__global__ void __launch_bounds__(threads, D == 64 ? 2 : 1)
    hopper_forward_kernel(AttentionShape shape, const Bfloat* qkv, Bfloat* out, float* lse) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr unsigned N = keys<D>;
  ASSAY_DYNAMIC_SHARED(Bfloat, shared);
  Bfloat *q = shared, *tiles = q + owned * D;  // then stages of keys and values
  const Head head(shape, blockIdx.y);
  const unsigned first = (gridDim.x - 1 - blockIdx.x) * owned, length = static_cast<unsigned>(shape.length);
  const Bfloat *base = qkv + head.packed, *k = base + head.width, *v = k + head.width;
  const unsigned group = group_of_warp() * 64, row = threadIdx.x / 32 * 16;
  const unsigned end = first + owned < length ? first + owned : length;
  const float scale = log2_e / sqrtf(static_cast<float>(D));  // scores in powers of 2
  float total[1][D / 8][4];
  Running<1> run;
  clear(total);

  const auto tile_of = [&](unsigned key) { return tiles + key / N % stages * (2 * N * D); };
  const auto load = [&](unsigned key) {
    if (key < end) {
      load_panels<D, N>(tile_of(key), k, head.step, key, length);
      load_panels<D, N>(tile_of(key) + N * D, v, head.step, key, length);
    }
    commit_copies();
  };
  load_panels<D, owned>(q, base, head.step, first, length);
  load(0);
  const auto next = [&](unsigned key) {
    wait_copies<0>();
    publish_copies();
    __syncthreads();
    load(key + N);
  };
  attend<D>(total, run, q, next, tile_of, group, first, scale, end);
  wait_copies<0>();
  __syncthreads();
  float factor[1][2];
  finish(factor, run, scale, lse + std::size_t{blockIdx.y} * length, first + row, length);
  store_rows<D, 1>(out + head.single, head.width, first, length, total, factor, q, row);
#endif
}

/// Block (x, y): dk and dv of a tile of keys of pair y, over the queries from there on. Scores are
/// transposed, [keys, queries], so that a warp has whole rows of what it sums.
template <unsigned D>
__global__ void __launch_bounds__(threads, 1)
    hopper_keys_kernel(AttentionShape shape, const Bfloat* qkv, const float* lse, const float* delta,
                       const Bfloat* dout, Bfloat* dqkv, uint4* scores) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr unsigned N = others;
  ASSAY_DYNAMIC_SHARED(Bfloat, shared);
  Bfloat *k = shared, *v = k + owned * D, *tiles = v + owned * D;       // then stages of queries and dout
  auto* floats = reinterpret_cast<float*>(tiles + 2 * stages * N * D);  // and of their lse and delta
  const Head head(shape, blockIdx.y);
  const unsigned first = blockIdx.x * owned, length = static_cast<unsigned>(shape.length);
  const Bfloat *q_from = qkv + head.packed, *d_from = dout + head.single;
  const float *lse_from = lse + std::size_t{blockIdx.y} * length,
              *delta_from = delta + std::size_t{blockIdx.y} * length;
  const unsigned group = group_of_warp() * 64, row = threadIdx.x / 32 * 16;
  const float scale = 1.0f / sqrtf(static_cast<float>(D));
  uint4* const kept = scores + blockIdx.y * attention_tiles(length) * 32;
  float dk[1][D / 8][4], dv[1][D / 8][4];
  clear(dk);
  clear(dv);

  const auto tile_of = [&](unsigned query) { return tiles + query / N % stages * (2 * N * D); };
  const auto floats_of = [&](unsigned query) { return floats + query / N % stages * (2 * N); };
  const auto load = [&](unsigned query) {
    if (query < length) {
      load_panels<D, N>(tile_of(query), q_from, head.step, query, length);
      load_panels<D, N>(tile_of(query) + N * D, d_from, head.width, query, length);
      load_floats<N>(floats_of(query), lse_from, query, length);
      load_floats<N>(floats_of(query) + N, delta_from, query, length);
    }
    commit_copies();
  };
  load_panels<D, owned>(k, q_from + head.width, head.step, first, length);
  load_panels<D, owned>(v, q_from + 2 * head.width, head.step, first, length);
  load(first);
  load(first + N);
  for (unsigned query = first; query < length; query += N) {
    wait_copies<1>();
    publish_copies();
    __syncthreads();
    load(query + 2 * N);
    // Queries that all lie before the keys of a group give them nothing.
    if (query + N > first + group)
      add_queries<D>(dk, dv, k, v, tile_of(query), floats_of(query), floats_of(query) + N, kept, group, scale,
                     first + row, query, length);
  }
  wait_copies<0>();
  __syncthreads();
  const float scales[1][2] = {{scale, scale}}, ones[1][2] = {{1, 1}};
  store_rows<D, 1>(dqkv + head.packed + head.width, head.step, first, length, dk, scales, k, row);
  store_rows<D, 1>(dqkv + head.packed + 2 * head.width, head.step, first, length, dv, ones, v, row);
#endif
}

/// Block (x, y): dq of a tile of queries of pair y, from the gradients of their scores, the longest first.
template <unsigned D>
__global__ void __launch_bounds__(threads, 2)
    hopper_queries_kernel(AttentionShape shape, const Bfloat* qkv, const uint4* scores, Bfloat* dqkv) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr unsigned N = others;
  ASSAY_DYNAMIC_SHARED(Bfloat, tiles);  // stages of keys
  const Head head(shape, blockIdx.y);
  const unsigned first = (gridDim.x - 1 - blockIdx.x) * owned, length = static_cast<unsigned>(shape.length);
  const unsigned end = first + owned < length ? first + owned : length, count = (length + side - 1) / side;
  const Bfloat* const k = qkv + head.packed + head.width;
  const uint4* const kept = scores + blockIdx.y * attention_tiles(length) * 32;
  const unsigned group = group_of_warp() * 64, row = threadIdx.x / 32 * 16;
  float dq[1][D / 8][4];
  clear(dq);

  const auto tile_of = [&](unsigned key) { return tiles + key / N % stages * (N * D); };
  const auto load = [&](unsigned key) {
    if (key < end) load_panels<D, N>(tile_of(key), k, head.step, key, length);
    commit_copies();
  };
  unsigned next[N / side][4];
  load(0);
  load(N);
  fetch_scores<N>(next, kept, (first + row) / side, 0, count);
  for (unsigned key = 0; key < end; key += N) {
    unsigned now[N / side][4];
    ASSAY_UNROLL
    for (unsigned i = 0; i < N / side; ++i) ASSAY_UNROLL
    for (unsigned j = 0; j < 4; ++j) now[i][j] = next[i][j];
    wait_copies<1>();
    publish_copies();
    __syncthreads();
    load(key + 2 * N);
    fetch_scores<N>(next, kept, (first + row) / side, (key + N) / side, count);
    if (key <= first + group + 63) {
      begin_products();
      start_all_columns<D, N>(dq[0], now, tile_of(key));
      commit_products();
      wait_products<0>(dq[0]);
    }
  }
  wait_copies<0>();
  __syncthreads();
  const float scale = 1.0f / sqrtf(static_cast<float>(D)), scales[1][2] = {{scale, scale}};
  store_rows<D, 1>(dqkv + head.packed, head.step, first, length, dq, scales, tiles, row);
#endif
}

template <typename... Params, typename... Args>
void start(void (*kernel)(Params...), const AttentionShape& shape, std::size_t bytes, void* stream,
           Args... args) {
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  launch(kernel, dim3(blocks_for(shape.length, owned), static_cast<unsigned>(shape.pairs())), dim3(threads),
         bytes, stream, shape, args...);
}

bool serves(const AttentionShape& shape) {
  int device = 0, major = 0;
  return (shape.depth == 64 || shape.depth == 128) && cudaGetDevice(&device) == cudaSuccess &&
         cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
         major == 9;
}

template <unsigned D>
void forward(const AttentionShape& shape, const Bfloat* qkv, Bfloat* out, float* lse, void* stream) {
  start(hopper_forward_kernel<D>, shape, (owned + 2 * stages * keys<D>)*D * sizeof(Bfloat), stream, qkv, out,
        lse);
}

template <unsigned D>
void backward(const AttentionShape& shape, const Bfloat* qkv, const float* lse, const float* delta,
              const Bfloat* dout, Bfloat* dqkv, void* scores, void* stream) {
  auto* const tiles = static_cast<uint4*>(scores);
  constexpr std::size_t bytes =
      (2 * owned + 2 * stages * others) * D * sizeof(Bfloat) + 2 * stages * others * sizeof(float);
  start(hopper_keys_kernel<D>, shape, bytes, stream, qkv, lse, delta, dout, dqkv, tiles);
  start(hopper_queries_kernel<D>, shape, stages * others * D * sizeof(Bfloat), stream, qkv,
        static_cast<const uint4*>(tiles), dqkv);
}

}  // namespace

bool hopper_attention_forward(const AttentionShape& shape, const Bfloat* qkv, Bfloat* out, float* lse,
                              void* stream) {
  if (!serves(shape)) return false;
  shape.depth == 64 ? forward<64>(shape, qkv, out, lse, stream) : forward<128>(shape, qkv, out, lse, stream);
  return true;
}

bool hopper_attention_backward(const AttentionShape& shape, const Bfloat* qkv, const float* lse,
                               const float* delta, const Bfloat* dout, Bfloat* dqkv, void* scores,
                               void* stream) {
  if (!serves(shape)) return false;
  shape.depth == 64 ? backward<64>(shape, qkv, lse, delta, dout, dqkv, scores, stream)
                    : backward<128>(shape, qkv, lse, delta, dout, dqkv, scores, stream);
  return true;
}

#else

bool hopper_attention_forward(const AttentionShape&, const Bfloat*, Bfloat*, float*, void*) { return false; }
bool hopper_attention_backward(const AttentionShape&, const Bfloat*, const float*, const float*,
                               const Bfloat*, Bfloat*, void*, void*) {
  return false;
}

#endif

}  // namespace assay::kernels::cuda
