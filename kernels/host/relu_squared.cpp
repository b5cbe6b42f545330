// SPDX-License-Identifier: Apache-2.0
#include "kernels/relu_squared.hpp"

#include <initializer_list>

#define ASSAY_BODY "kernels/host/relu_squared_body.inc"
#include "kernels/host/foreach_isa.inc"

namespace assay::kernels::host {

void relu_squared_forward(const float* x, float* y, std::size_t count) noexcept {
  ASSAY_DISPATCH(relu_squared_values, x, y, count);
}

void relu_squared_backward(const float* x, const float* dy, float* dx, std::size_t count) noexcept {
  ASSAY_DISPATCH(relu_squared_gradient, x, dy, dx, count);
}

}  // namespace assay::kernels::host
