// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm_golden.hpp"

#include <algorithm>

#define ASSAY_BODY "kernels/host/gemm_golden_body.inc"
#include "kernels/host/foreach_isa.inc"

namespace assay::kernels::host {
namespace {

/// An empty inner dimension leaves a product of zeros.
template <typename T>
bool empty_product(T* c, std::size_t n, std::size_t k, std::size_t row_begin, std::size_t row_end) noexcept {
  if (k == 0) std::fill(c + row_begin * n, c + row_end * n, T{});
  return k == 0;
}

}  // namespace

void gemm_golden_fp32(const float* a, const float* b, float* c, std::size_t m, std::size_t n, std::size_t k,
                      std::size_t row_begin, std::size_t row_end) noexcept {
  row_end = std::min(row_end, m);
  if (row_begin >= row_end || empty_product(c, n, k, row_begin, row_end)) return;
  ASSAY_DISPATCH(golden_fp32, a, b, c, n, k, row_begin, row_end);
}

void gemm_golden_fp64(const double* a, const double* b, double* c, std::size_t m, std::size_t n,
                      std::size_t k, std::size_t row_begin, std::size_t row_end) noexcept {
  row_end = std::min(row_end, m);
  if (row_begin >= row_end || empty_product(c, n, k, row_begin, row_end)) return;
  ASSAY_DISPATCH(golden_fp64, a, b, c, n, k, row_begin, row_end);
}

}  // namespace assay::kernels::host
