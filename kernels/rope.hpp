// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "kernels/bfloat.hpp"

namespace assay::kernels {

/// Rotary positions (Su et al. 2021) on the queries and keys of a packed [rows, 3 * heads * depth] buffer (q,
/// k, v side by side), in place; row r is at position r % length. Elements j and j + depth/2 of a head turn
/// by the angle position * 10000^(-2 j / depth), backwards where `inverse` (which is also the gradient).
/// depth is a multiple of 32.
struct RopeShape {
  std::size_t heads = 1, depth = 32, length = 1;
};

namespace host {
/// cosine and sine [length, depth / 2], computed in fp64.
void rope_table(const RopeShape& shape, float* cosine, float* sine) noexcept;
/// Rows [first, last) of `qkv`.
void rope(const RopeShape& shape, const float* cosine, const float* sine, float* qkv, std::size_t first,
          std::size_t last, bool inverse) noexcept;
}  // namespace host

namespace cuda {
/// Rows [0, rows); the tables are the host's.
void rope(const RopeShape& shape, const float* cosine, const float* sine, float* qkv, std::size_t rows,
          bool inverse, void* stream);
void rope(const RopeShape& shape, const float* cosine, const float* sine, Bfloat* qkv, std::size_t rows,
          bool inverse, void* stream);
}  // namespace cuda
}  // namespace assay::kernels
