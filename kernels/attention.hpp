// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "kernels/bfloat.hpp"

namespace assay::kernels {

/// Causal multi-head attention: packed qkv [batch * length, 3 * heads * depth] (q, k, v side by side, head h
/// in columns h * depth of each), output [batch * length, heads * depth]. depth is a multiple of 16.
struct AttentionShape {
  std::size_t batch = 1, length = 1, heads = 1, depth = 16;
  constexpr std::size_t width() const noexcept { return heads * depth; }
  constexpr std::size_t pairs() const noexcept { return batch * heads; }
};

/// A call handles one pair (sequence b, head h) = (pair / heads, pair % heads) and no other call writes what
/// it writes: no atomics, and the same bits for any number of threads.
namespace host {
/// Floats of scratch memory a thread needs, 64-byte aligned.
std::size_t attention_scratch(const AttentionShape& shape) noexcept;

/// out = softmax(q k^T / sqrt(depth), causal) v; lse[pair * length + i] = log of the softmax's denominator
/// (with the maximum put back), which the backward pass recomputes the probabilities from.
void attention_forward(const AttentionShape& shape, const float* qkv, float* out, float* lse,
                       std::size_t pair, float* scratch) noexcept;

/// Writes the columns of this head in dqkv (all three parts). `out` and `lse` are those of the forward pass.
void attention_backward(const AttentionShape& shape, const float* qkv, const float* out, const float* lse,
                        const float* dout, float* dqkv, std::size_t pair, float* scratch) noexcept;
}  // namespace host

/// Gradients of scores in bf16 that a GPU keeps between two kernels: tiles of 16 queries and 16 keys up to
/// the diagonal, by query and then by key.
inline constexpr std::size_t attention_tile = 16;
/// Tiles of a pair before that of a query and a key.
constexpr std::size_t attention_tiles_before(std::size_t query_tile, std::size_t key_tile) noexcept {
  return query_tile * (query_tile + 1) / 2 + key_tile;
}
constexpr std::size_t attention_tiles(std::size_t length) noexcept {
  return attention_tiles_before((length + attention_tile - 1) / attention_tile, 0);
}
constexpr std::size_t attention_score_bytes(const AttentionShape& shape) noexcept {
  return shape.pairs() * attention_tiles(shape.length) * attention_tile * attention_tile * sizeof(Bfloat);
}

/// All pairs on a GPU, without atomics: backward computes dk and dv over the queries, and dq over the keys,
/// apart. In fp32 on ordinary cores with depth up to 128; in bf16 on tensor cores with depth 32, 64 or 128,
/// sums in fp32, and weights and gradients of scores rounded to bf16 before the second product. Gradients of
/// scores are computed twice, which makes seven products of five, but for bf16 on compute capability 9.0 and
/// depth 64 or 128. `delta` is scratch memory for pairs * length floats, in bf16 `scores` for
/// attention_score_bytes.
namespace cuda {
bool attention_takes(std::size_t depth, bool bf16) noexcept;
void attention_forward(const AttentionShape& shape, const float* qkv, float* out, float* lse, void* stream);
void attention_forward(const AttentionShape& shape, const Bfloat* qkv, Bfloat* out, float* lse, void* stream);
void attention_backward(const AttentionShape& shape, const float* qkv, const float* out, const float* lse,
                        const float* dout, float* dqkv, float* delta, void* scores, void* stream);
void attention_backward(const AttentionShape& shape, const Bfloat* qkv, const Bfloat* out, const float* lse,
                        const Bfloat* dout, Bfloat* dqkv, float* delta, void* scores, void* stream);
}  // namespace cuda
}  // namespace assay::kernels
