// SPDX-License-Identifier: Apache-2.0
// Tiles of one head's queries, keys, values and gradients in shared memory, and products of them on tensor
// cores.
#pragma once

#include "kernels/attention.hpp"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/numbers.cuh"

namespace assay::kernels::cuda {

inline constexpr unsigned attention_threads = 128, attention_warps = attention_threads / 32;
inline constexpr float log2_e = 1.44269504088896341f, ln_2 = 0.693147180559945309f;

/// Where the 16-byte piece `piece` of a row lies in a tile of rows of D elements. Rows of 8 pieces and more
/// would put a column of pieces into the same banks; exchanging pieces by the row number spreads the 8 rows
/// that are read together over all of them.
template <unsigned D>
__device__ inline unsigned place(unsigned row, unsigned piece) {
  constexpr unsigned pieces = D / 8, mask = (pieces < 8 ? pieces : 8) - 1;
  const unsigned turn = (pieces < 8 ? row / (8 / pieces) : row) & mask;
  return row * D + (piece ^ turn) * 8;
}

/// Starts to copy rows [first, first + rows) of a head, `step` apart, into a tile; zeros beyond `length`.
template <unsigned D, unsigned rows>
__device__ inline void load_tile(Bfloat* to, const Bfloat* from, unsigned step, unsigned first,
                                 unsigned length) {
  constexpr unsigned pieces = D / 8;
  static_assert(rows * pieces % attention_threads == 0);
  ASSAY_UNROLL_BY(4)
  for (unsigned i = 0; i < rows * pieces; i += attention_threads) {
    const unsigned row = (i + threadIdx.x) / pieces, piece = (i + threadIdx.x) % pieces;
    const bool valid = first + row < length;
    copy_async_16(to + place<D>(row, piece), from + std::size_t{valid ? first + row : 0} * step + piece * 8,
                  valid);
  }
}

/// Starts to copy one float per row.
template <unsigned rows>
__device__ inline void load_floats(float* to, const float* from, unsigned first, unsigned length) {
  static_assert(rows <= attention_threads);
  if (threadIdx.x >= rows) return;
  const bool valid = first + threadIdx.x < length;
  copy_async_4(to + threadIdx.x, from + (valid ? first + threadIdx.x : 0), valid);
}

/// c[16 M, N] += a b^T of a warp: rows [row, row + 16 M) of tile a and all N rows of tile b, D elements each.
template <unsigned D, unsigned M, unsigned N>
__device__ inline void multiply_rows(float (&c)[M][N / 8][4], const Bfloat* a, unsigned row,
                                     const Bfloat* b) {
  ASSAY_UNROLL
  for (unsigned k = 0; k < D / 16; ++k) {
    unsigned x[M][4];
    ASSAY_UNROLL
    for (unsigned m = 0; m < M; ++m)
      load_matrices(x[m], a + place<D>(row + 16 * m + lane() % 16, 2 * k + lane() / 16));
    ASSAY_UNROLL
    for (unsigned n = 0; n < N / 16; ++n) {
      unsigned y[4];
      load_matrices(y, b + place<D>(16 * n + lane() % 8 + lane() / 16 * 8, 2 * k + lane() / 8 % 2));
      ASSAY_UNROLL
      for (unsigned m = 0; m < M; ++m) {
        mma(c[m][2 * n], x[m], y[0], y[1]);
        mma(c[m][2 * n + 1], x[m], y[2], y[3]);
      }
    }
  }
}

/// c[16 M, D] += a b: a [16 M, K] as fragments, b a tile of K rows of D elements.
template <unsigned D, unsigned M, unsigned K>
__device__ inline void multiply_columns(float (&c)[M][D / 8][4], const unsigned (&a)[M][K / 16][4],
                                        const Bfloat* b) {
  ASSAY_UNROLL
  for (unsigned k = 0; k < K / 16; ++k) {
    ASSAY_UNROLL
    for (unsigned n = 0; n < D / 16; ++n) {
      unsigned y[4];
      load_transposed(y, b + place<D>(16 * k + lane() % 16, 2 * n + lane() / 16));
      ASSAY_UNROLL
      for (unsigned m = 0; m < M; ++m) {
        mma(c[m][2 * n], a[m][k], y[0], y[1]);
        mma(c[m][2 * n + 1], a[m][k], y[2], y[3]);
      }
    }
  }
}

/// Results of one product as the left side of the next one, rounded to bf16.
template <unsigned M, unsigned N>
__device__ inline void as_left(unsigned (&a)[M][N / 16][4], const float (&c)[M][N / 8][4]) {
  ASSAY_UNROLL
  for (unsigned m = 0; m < M; ++m) ASSAY_UNROLL
  for (unsigned k = 0; k < N / 16; ++k) ASSAY_UNROLL
  for (unsigned half = 0; half < 2; ++half) {
    a[m][k][2 * half] = pack_bf16(c[m][2 * k + half][0], c[m][2 * k + half][1]);
    a[m][k][2 * half + 1] = pack_bf16(c[m][2 * k + half][2], c[m][2 * k + half][3]);
  }
}

template <unsigned M, unsigned N>
__device__ inline void clear(float (&c)[M][N][4]) {
  ASSAY_UNROLL
  for (unsigned m = 0; m < M; ++m) ASSAY_UNROLL
  for (unsigned n = 0; n < N; ++n) ASSAY_UNROLL
  for (unsigned i = 0; i < 4; ++i) c[m][n][i] = 0;
}

/// Of the 2 * slabs rows that a lane has a part of: the largest score so far, and the sum of the weights of
/// its columns.
template <unsigned slabs>
struct Running {
  float most[slabs][2], sum[slabs][2];

  __device__ Running() {
    ASSAY_UNROLL
    for (unsigned m = 0; m < slabs; ++m) ASSAY_UNROLL
    for (unsigned half = 0; half < 2; ++half) most[m][half] = -INFINITY, sum[m][half] = 0;
  }
};

/// Scores of N keys become weights; what was summed under an older maximum is to be multiplied by `shrink`.
/// Row and column numbers are those of the tiles' begin; without `masked` all keys are before all rows.
template <bool masked, unsigned slabs, unsigned N>
__device__ inline void weigh(float (&s)[slabs][N / 8][4], float (&shrink)[slabs][2], Running<slabs>& run,
                             float scale, unsigned first_row, unsigned first_key) {
  ASSAY_UNROLL
  for (unsigned m = 0; m < slabs; ++m) ASSAY_UNROLL
  for (unsigned half = 0; half < 2; ++half) {
    const unsigned row = first_row + 16 * m + 8 * half + lane() / 4;
    float most = run.most[m][half];
    ASSAY_UNROLL
    for (unsigned n = 0; n < N / 8; ++n) ASSAY_UNROLL
    for (unsigned i = 2 * half; i < 2 * half + 2; ++i) {
      if (masked && first_key + 8 * n + 2 * (lane() % 4) + i % 2 > row) s[m][n][i] = -INFINITY;
      most = fmaxf(most, s[m][n][i]);
    }
    most = fmaxf(most, __shfl_xor_sync(all_lanes, most, 1));
    most = fmaxf(most, __shfl_xor_sync(all_lanes, most, 2));
    shrink[m][half] = exp2_fast((run.most[m][half] - most) * scale);
    const float shift = most * scale;
    float sum = run.sum[m][half] * shrink[m][half];
    ASSAY_UNROLL
    for (unsigned n = 0; n < N / 8; ++n) ASSAY_UNROLL
    for (unsigned i = 2 * half; i < 2 * half + 2; ++i) {
      s[m][n][i] = exp2_fast(s[m][n][i] * scale - shift);
      sum += s[m][n][i];
    }
    run.most[m][half] = most;
    run.sum[m][half] = sum;
  }
}

/// The same, masked where it must be.
template <unsigned slabs, unsigned N>
__device__ inline void weigh(float (&s)[slabs][N / 8][4], float (&shrink)[slabs][2], Running<slabs>& run,
                             float scale, unsigned first_row, unsigned first_key) {
  if (first_key + N > first_row)
    weigh<true, slabs, N>(s, shrink, run, scale, first_row, first_key);
  else
    weigh<false, slabs, N>(s, shrink, run, scale, first_row, first_key);
}

/// Rows times their factors.
template <unsigned slabs, unsigned N>
__device__ inline void multiply_each(float (&c)[slabs][N][4], const float (&factor)[slabs][2]) {
  ASSAY_UNROLL
  for (unsigned m = 0; m < slabs; ++m) ASSAY_UNROLL
  for (unsigned n = 0; n < N; ++n) ASSAY_UNROLL
  for (unsigned i = 0; i < 4; ++i) c[m][n][i] *= factor[m][i / 2];
}

/// At the end: what a row's total is to be multiplied by, and its lse (of the pair, `length` of them).
template <unsigned slabs>
__device__ inline void finish(float (&factor)[slabs][2], const Running<slabs>& run, float scale, float* lse,
                              unsigned first_row, unsigned length) {
  ASSAY_UNROLL
  for (unsigned m = 0; m < slabs; ++m) ASSAY_UNROLL
  for (unsigned half = 0; half < 2; ++half) {
    float sum = run.sum[m][half];
    sum += __shfl_xor_sync(all_lanes, sum, 1);
    sum += __shfl_xor_sync(all_lanes, sum, 2);
    factor[m][half] = 1.0f / sum;
    const unsigned at = first_row + 16 * m + 8 * half + lane() / 4;
    if (lane() % 4 == 0 && at < length) lse[at] = run.most[m][half] * scale * ln_2 + logf(sum);
  }
}

/// Weights e^(score - lse) from scores. `visible(n, i)` says whether element i of column block n counts,
/// `lse2` what belongs to its query.
template <unsigned N, typename Visible, typename Lse>
__device__ inline void weigh_again(float (&s)[1][N / 8][4], float scale, const Visible& visible,
                                   const Lse& lse2) {
  ASSAY_UNROLL
  for (unsigned n = 0; n < N / 8; ++n) ASSAY_UNROLL
  for (unsigned i = 0; i < 4; ++i)
    s[0][n][i] = visible(n, i) ? exp2_fast(s[0][n][i] * scale - lse2(n, i)) : 0.0f;
}

/// The column of element i of block n of a lane.
__device__ inline unsigned column(unsigned n, unsigned i) { return 8 * n + 2 * (lane() % 4) + i % 2; }

/// Of scores [keys, queries] of which a warp has keys from `key` on: weights of N queries from `query` on, of
/// which `lse_of` are the lse.
template <unsigned N>
__device__ inline void weigh_keys(float (&s)[1][N / 8][4], float scale, unsigned key, unsigned query,
                                  unsigned length, const float* lse_of) {
  const auto lse2 = [&](unsigned n, unsigned i) { return lse_of[column(n, i)] * log2_e; };
  const unsigned mine = key + lane() / 4;
  if (query >= key + 15 && query + N <= length)
    weigh_again<N>(
        s, scale * log2_e, [](unsigned, unsigned) { return true; }, lse2);
  else
    weigh_again<N>(
        s, scale * log2_e,
        [&](unsigned n, unsigned i) {
          return query + column(n, i) >= mine + i / 2 * 8 && query + column(n, i) < length;
        },
        lse2);
}

/// Of a lane's two queries, the first of its warp being `first`: the lse of the pair, times log2 e, and
/// delta. Infinity: a query that is not there gives no key a weight.
__device__ inline void load_queries(float (&lse2)[2], float (&delta_of)[2], const float* lse,
                                    const float* delta, unsigned first, unsigned length) {
  ASSAY_UNROLL
  for (unsigned half = 0; half < 2; ++half) {
    const unsigned query = first + 8 * half + lane() / 4;
    const std::size_t at = std::size_t{blockIdx.y} * length + query;
    lse2[half] = query < length ? lse[at] * log2_e : INFINITY;
    delta_of[half] = query < length ? delta[at] : 0.0f;
  }
}

/// Of scores [queries, keys] of which a warp has queries from `query` on, with the lse, times log2 e, of a
/// lane's two: weights of N keys from `key` on.
template <unsigned N>
__device__ inline void weigh_queries(float (&s)[1][N / 8][4], float scale, unsigned query, unsigned key,
                                     const float (&lse2)[2]) {
  const auto lse_here = [&](unsigned, unsigned i) { return lse2[i / 2]; };
  const unsigned mine = query + lane() / 4;
  if (key + N - 1 <= query)
    weigh_again<N>(
        s, scale * log2_e, [](unsigned, unsigned) { return true; }, lse_here);
  else
    weigh_again<N>(
        s, scale * log2_e, [&](unsigned n, unsigned i) { return key + column(n, i) <= mine + i / 2 * 8; },
        lse_here);
}

/// Gradients of weights become gradients of scores (but for the scale).
template <unsigned N, typename Delta>
__device__ inline void to_scores(float (&d)[1][N / 8][4], const float (&weights)[1][N / 8][4],
                                 const Delta& delta) {
  ASSAY_UNROLL
  for (unsigned n = 0; n < N / 8; ++n) ASSAY_UNROLL
  for (unsigned i = 0; i < 4; ++i) d[0][n][i] = weights[0][n][i] * (d[0][n][i] - delta(n, i));
}

/// Writes a warp's c[16 M, D] times `factor` of each row (two per lane and m: rows lane / 4 and 8 more) to
/// rows [first, ..) of a head, those below `length`, through its own rows of a tile that no other thread
/// block reads any more: 16-byte stores.
template <unsigned D, unsigned M>
__device__ inline void store_rows(Bfloat* to, unsigned step, unsigned first, unsigned length,
                                  const float (&c)[M][D / 8][4], const float (&factor)[M][2], Bfloat* tile,
                                  unsigned row) {
  ASSAY_UNROLL
  for (unsigned m = 0; m < M; ++m) ASSAY_UNROLL
  for (unsigned n = 0; n < D / 8; ++n) ASSAY_UNROLL
  for (unsigned half = 0; half < 2; ++half) {
    const unsigned r = row + 16 * m + 8 * half + lane() / 4;
    *reinterpret_cast<unsigned*>(tile + place<D>(r, n) + 2 * (lane() % 4)) =
        pack_bf16(c[m][n][2 * half] * factor[m][half], c[m][n][2 * half + 1] * factor[m][half]);
  }
  __syncwarp();
  constexpr unsigned pieces = D / 8;
  ASSAY_UNROLL
  for (unsigned i = 0; i < 16 * M * pieces; i += 32) {
    const unsigned r = row + (i + lane()) / pieces, piece = (i + lane()) % pieces;
    if (first + r < length)
      *reinterpret_cast<uint4*>(to + std::size_t{first + r} * step + piece * 8) =
          *reinterpret_cast<const uint4*>(tile + place<D>(r, piece));
  }
}

/// Calls f(std::integral_constant<unsigned, depth>) for the depths that there are kernels for.
template <typename F>
void by_depth(std::size_t depth, const F& f) {
  if (depth == 32) f(std::integral_constant<unsigned, 32>{});
  if (depth == 64) f(std::integral_constant<unsigned, 64>{});
  if (depth == 128) f(std::integral_constant<unsigned, 128>{});
}

/// Where the parts of a pair (sequence, head) lie in packed buffers. Numbers of rows and their distances fit
/// 32 bits, which saves registers.
struct Head {
  unsigned step, width;
  std::size_t packed, single;  ///< of its first row: element of qkv, element of out

  __device__ Head(const AttentionShape& s, unsigned pair) {
    const auto heads = static_cast<unsigned>(s.heads), depth = static_cast<unsigned>(s.depth);
    width = heads * depth;
    step = 3 * width;
    packed = pair / heads * s.length * step + pair % heads * depth;
    single = pair / heads * s.length * width + pair % heads * depth;
  }
};

}  // namespace assay::kernels::cuda
