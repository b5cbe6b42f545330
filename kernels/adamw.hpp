// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "kernels/bfloat.hpp"

namespace assay::kernels {

/// AdamW (Loshchilov and Hutter 2019) with the bias corrections of step t folded into two numbers.
struct AdamW {
  float rate = 1e-3f, beta1 = 0.9f, beta2 = 0.95f, epsilon = 1e-8f, decay = 0.0f;
  float correction1 = 1, correction2 = 1;  ///< 1 / (1 - beta^t)
  float gradient_scale = 1;  ///< the gradient is multiplied by this first (1 / ranks after a sum)

  /// With the corrections of the 1-based step t.
  AdamW at(int t) const noexcept;
};

/// g' = scale g; m = b1 m + (1 - b1) g'; v = b2 v + (1 - b2) g'^2;
/// p -= rate (m c1 / (sqrt(v c2) + epsilon) + decay p). 28 B of traffic per parameter. Only additions,
/// multiplications, divisions and square roots, none of them fused: the same bits on every instruction set,
/// so that replicas on different processors stay equal.
namespace host {
void adamw(const AdamW& rule, float* parameters, const float* gradients, float* m, float* v,
           std::size_t count) noexcept;
}  // namespace host

/// On a GPU with the same bits as on the host.
namespace cuda {
/// `weights`, where not null, get the new parameters rounded to bf16: 30 B of traffic per parameter.
void adamw(const AdamW& rule, float* parameters, const float* gradients, float* m, float* v, Bfloat* weights,
           std::size_t count, void* stream);
/// What else happens to parameters and gradients: to = from rounded to bf16, data *= factor, to += from.
void to_bf16(const float* from, Bfloat* to, std::size_t count, void* stream);
void scale(float* data, float factor, std::size_t count, void* stream);
void add(float* to, const float* from, std::size_t count, void* stream);
}  // namespace cuda
}  // namespace assay::kernels
