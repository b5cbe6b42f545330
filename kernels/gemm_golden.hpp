// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::kernels::host {

/// C = A B of integer-valued floats or doubles, row-major, without any BLAS. Exact in any order of summation
/// while k max|a| max|b| stays below 2^24 (fp32) or 2^53 (fp64). Rows [row_begin, row_end) of C only, so that
/// callers can spread it over threads.
void gemm_golden_fp32(const float* a, const float* b, float* c, std::size_t m, std::size_t n, std::size_t k,
                      std::size_t row_begin, std::size_t row_end) noexcept;
void gemm_golden_fp64(const double* a, const double* b, double* c, std::size_t m, std::size_t n,
                      std::size_t k, std::size_t row_begin, std::size_t row_end) noexcept;

}  // namespace assay::kernels::host
