// SPDX-License-Identifier: Apache-2.0
#include "kernels/adamw.hpp"

#include <cmath>

#define ASSAY_BODY "kernels/host/adamw_body.inc"
#include "kernels/host/foreach_isa.inc"

namespace assay::kernels {

AdamW AdamW::at(int t) const noexcept {
  AdamW rule = *this;
  rule.correction1 = static_cast<float>(1 / (1 - std::pow(static_cast<double>(beta1), t)));
  rule.correction2 = static_cast<float>(1 / (1 - std::pow(static_cast<double>(beta2), t)));
  return rule;
}

namespace host {

void adamw(const AdamW& rule, float* parameters, const float* gradients, float* m, float* v,
           std::size_t count) noexcept {
  ASSAY_DISPATCH(adamw_values, rule, parameters, gradients, m, v, count);
}

}  // namespace host
}  // namespace assay::kernels
