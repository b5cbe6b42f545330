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
