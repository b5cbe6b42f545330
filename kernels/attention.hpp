// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace assay::kernels {

/// Causal multi-head attention: packed qkv [batch * length, 3 * heads * depth] (q, k, v side by side, head h in columns
/// h * depth of each), output [batch * length, heads * depth]. depth is a multiple of 16.
struct AttentionShape {
  std::size_t batch = 1, length = 1, heads = 1, depth = 16;
  std::size_t width() const noexcept { return heads * depth; }
  std::size_t pairs() const noexcept { return batch * heads; }
  /// Multiply-adds counted as 2, the masked half left out: 2 length (length + 1) depth per pair forward; backward
  /// computes five products for two.
  double flops_forward() const noexcept {
    return 2.0 * static_cast<double>(pairs() * length) * static_cast<double>((length + 1) * depth);
  }
};

/// A call handles one pair (sequence b, head h) = (pair / heads, pair % heads) and nobody else writes what it writes:
/// no atomics, and the same bits for any number of threads.
namespace host {
/// Floats of scratch memory a thread needs, 64-byte aligned.
std::size_t attention_scratch(const AttentionShape& shape) noexcept;

/// out = softmax(q k^T / sqrt(depth), causal) v; lse[pair * length + i] = log of the softmax's denominator (with the
/// maximum put back), which the backward pass recomputes the probabilities from.
void attention_forward(const AttentionShape& shape, const float* qkv, float* out, float* lse, std::size_t pair,
                       float* scratch) noexcept;

/// Writes the columns of this head in dqkv (all three parts). `out` and `lse` are those of the forward pass.
void attention_backward(const AttentionShape& shape, const float* qkv, const float* out, const float* lse,
                        const float* dout, float* dqkv, std::size_t pair, float* scratch) noexcept;
}  // namespace host
}  // namespace assay::kernels
