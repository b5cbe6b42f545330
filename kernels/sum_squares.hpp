// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace assay::kernels {

inline constexpr std::size_t sum_squares_block = 4096;

/// Sum of squares in fp64 of one block (up to `sum_squares_block` elements). Callers add the blocks in their
/// order, so the sum does not depend on the number of threads. Not finite if any element is not.
namespace host {
double sum_squares(const float* data, std::size_t count) noexcept;
}  // namespace host

namespace cuda {
/// parts[b] = the sum of block b, with the same bits as on the host, for all blocks of `count` elements.
void sum_squares(const float* data, std::size_t count, double* parts, void* stream);
}  // namespace cuda
}  // namespace assay::kernels
