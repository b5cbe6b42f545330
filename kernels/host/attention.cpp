// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention.hpp"

#include <initializer_list>

namespace assay::kernels::host {
namespace {
/// Columns of a row of scores: whole blocks of the widest vectors.
constexpr std::size_t attention_padded(std::size_t length) noexcept { return (length + 63) / 64 * 64; }
}  // namespace
}  // namespace assay::kernels::host

#define ASSAY_BODY "kernels/host/attention_body.inc"
#include "kernels/host/foreach_isa.inc"

namespace assay::kernels::host {

std::size_t attention_scratch(const AttentionShape& shape) noexcept {
  return (2 * shape.depth + 2 * shape.length + 16) * attention_padded(shape.length);
}

void attention_forward(const AttentionShape& shape, const float* qkv, float* out, float* lse,
                       std::size_t pair, float* scratch) noexcept {
  ASSAY_DISPATCH(attention_values, shape, qkv, out, lse, pair, scratch);
}

void attention_backward(const AttentionShape& shape, const float* qkv, const float* out, const float* lse,
                        const float* dout, float* dqkv, std::size_t pair, float* scratch) noexcept {
  ASSAY_DISPATCH(attention_gradient, shape, qkv, out, lse, dout, dqkv, pair, scratch);
}

}  // namespace assay::kernels::host
