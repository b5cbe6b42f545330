// SPDX-License-Identifier: Apache-2.0
#include "kernels/rmsnorm.hpp"

#include <initializer_list>

#define ASSAY_BODY "kernels/host/rmsnorm_body.inc"
#include "kernels/host/foreach_isa.inc"

namespace assay::kernels::host {

void rmsnorm_forward(const float* x, const float* add, float* sum, float* y, float* rstd, std::size_t rows,
                     std::size_t width) noexcept {
  ASSAY_DISPATCH(rmsnorm_rows, x, add, sum, y, rstd, rows, width);
}

void rmsnorm_backward(const float* dy, const float* y, const float* rstd, float* dx, std::size_t rows,
                      std::size_t width) noexcept {
  ASSAY_DISPATCH(rmsnorm_gradient, dy, y, rstd, dx, rows, width);
}

}  // namespace assay::kernels::host
