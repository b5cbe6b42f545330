// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace assay::kernels {

/// AdamW (Loshchilov and Hutter 2019) with the bias corrections of step t folded into two numbers.
struct AdamW {
  float rate = 1e-3f, beta1 = 0.9f, beta2 = 0.95f, epsilon = 1e-8f, decay = 0.0f;
  float correction1 = 1, correction2 = 1;  ///< 1 / (1 - beta^t)
  float gradient_scale = 1;                ///< the gradient is multiplied by this first (1 / ranks after a sum)

  /// With the corrections of the 1-based step t.
  AdamW at(int t) const noexcept;
};

/// g' = scale g; m = b1 m + (1 - b1) g'; v = b2 v + (1 - b2) g'^2;
/// p -= rate (m c1 / (sqrt(v c2) + epsilon) + decay p). 28 B of traffic per parameter. Only additions, multiplications, divisions
/// and square roots, none of them fused: the same bits on every instruction set, so that replicas on different processors
/// stay equal.
namespace host {
void adamw(const AdamW& rule, float* parameters, const float* gradients, float* m, float* v, std::size_t count) noexcept;
}  // namespace host
}  // namespace assay::kernels
