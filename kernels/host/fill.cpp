// SPDX-License-Identifier: Apache-2.0
#include "kernels/fill.hpp"

#include <bit>

#define ASSAY_BODY "kernels/host/fill_body.inc"
#include "kernels/host/foreach_isa.inc"

namespace assay::kernels::host {

void fill_uniform_fp32(float* data, std::size_t count, std::uint64_t key, std::size_t first) noexcept {
  ASSAY_DISPATCH(uniform_fp32, data, count, key, first);
}
void fill_uniform_fp64(double* data, std::size_t count, std::uint64_t key, std::size_t first) noexcept {
  ASSAY_DISPATCH(uniform_fp64, data, count, key, first);
}
void fill_integer_fp32(float* data, std::size_t count, std::uint64_t key, std::size_t first,
                       int limit) noexcept {
  ASSAY_DISPATCH(integer_fp32, data, count, key, first, limit);
}
void fill_integer_fp64(double* data, std::size_t count, std::uint64_t key, std::size_t first,
                       int limit) noexcept {
  ASSAY_DISPATCH(integer_fp64, data, count, key, first, limit);
}

}  // namespace assay::kernels::host
