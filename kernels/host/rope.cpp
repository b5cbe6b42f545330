// SPDX-License-Identifier: Apache-2.0
#include "kernels/rope.hpp"

#include <cmath>
#include <initializer_list>

#define ASSAY_BODY "kernels/host/rope_body.inc"
#include "kernels/host/foreach_isa.inc"

namespace assay::kernels::host {

void rope_table(const RopeShape& shape, float* cosine, float* sine) noexcept {
  const std::size_t half = shape.depth / 2;
  for (std::size_t t = 0; t < shape.length; ++t)
    for (std::size_t j = 0; j < half; ++j) {
      const double angle = static_cast<double>(t) * std::pow(10000.0, -2.0 * static_cast<double>(j) /
                                                                          static_cast<double>(shape.depth));
      cosine[t * half + j] = static_cast<float>(std::cos(angle));
      sine[t * half + j] = static_cast<float>(std::sin(angle));
    }
}

void rope(const RopeShape& shape, const float* cosine, const float* sine, float* qkv, std::size_t first,
          std::size_t last, bool inverse) noexcept {
  ASSAY_DISPATCH(rope_rows, shape, cosine, sine, qkv, first, last, inverse);
}

}  // namespace assay::kernels::host
