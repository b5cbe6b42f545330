// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/bfloat.hpp"

namespace assay::kernels {

/// Fused softmax cross-entropy, in place: loss[r] = -ln softmax(logits[r, :])[targets[r]], and logits[r, :]
/// becomes its gradient times `scale`: scale (softmax - one_hot(target)). A target of -1 is left out: loss 0,
/// gradient 0. `width` (the vocabulary) is a multiple of 16. Work: one read and one write of the logits that
/// the cache does not keep.
namespace host {
void cross_entropy(float* logits, const std::int32_t* targets, float* loss, float scale, std::size_t rows,
                   std::size_t width) noexcept;
}  // namespace host

namespace cuda {
void cross_entropy(float* logits, const std::int32_t* targets, float* loss, float scale, std::size_t rows,
                   std::size_t width, void* stream);
void cross_entropy(Bfloat* logits, const std::int32_t* targets, float* loss, float scale, std::size_t rows,
                   std::size_t width, void* stream);
}  // namespace cuda
}  // namespace assay::kernels
