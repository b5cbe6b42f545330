// SPDX-License-Identifier: Apache-2.0
#include "kernels/cross_entropy.hpp"

#include <initializer_list>

#define ASSAY_BODY "kernels/host/cross_entropy_body.inc"
#include "kernels/host/foreach_isa.inc"

namespace assay::kernels::host {

void cross_entropy(float* logits, const std::int32_t* targets, float* loss, float scale, std::size_t rows,
                   std::size_t width) noexcept {
  ASSAY_DISPATCH(cross_entropy_rows, logits, targets, loss, scale, rows, width);
}

}  // namespace assay::kernels::host
