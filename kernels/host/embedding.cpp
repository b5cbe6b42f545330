// SPDX-License-Identifier: Apache-2.0
#include "kernels/embedding.hpp"

#define ASSAY_BODY "kernels/host/embedding_body.inc"
#include "kernels/host/foreach_isa.inc"

namespace assay::kernels::host {

void embedding_forward(const float* table, const std::int32_t* tokens, float* out, std::size_t rows,
                       std::size_t width) noexcept {
  ASSAY_DISPATCH(embedding_gather, table, tokens, out, rows, width);
}

void embedding_backward(const float* dout, const std::int32_t* tokens, float* dtable, std::size_t rows,
                        std::size_t width, std::int32_t first, std::int32_t last) noexcept {
  ASSAY_DISPATCH(embedding_scatter, dout, tokens, dtable, rows, width, first, last);
}

}  // namespace assay::kernels::host
