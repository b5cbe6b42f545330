// SPDX-License-Identifier: Apache-2.0
#include "kernels/sum_squares.hpp"

#define ASSAY_BODY "kernels/host/sum_squares_body.inc"
#include "kernels/host/foreach_isa.inc"

namespace assay::kernels::host {

double sum_squares(const float* data, std::size_t count) noexcept {
  return ASSAY_DISPATCH(sum_squares_values, data, count);
}

}  // namespace assay::kernels::host
