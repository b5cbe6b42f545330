// SPDX-License-Identifier: Apache-2.0
// Random operands: every element is a function of (key, index), so any part may be filled by any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::kernels::host {

/// data[i] uniform in [-1, 1) with 23 (52) random bits, for elements first .. first + count of an array that
/// starts at `data - first`.
void fill_uniform_fp32(float* data, std::size_t count, std::uint64_t key, std::size_t first) noexcept;
void fill_uniform_fp64(double* data, std::size_t count, std::uint64_t key, std::size_t first) noexcept;

/// Integers uniform in [-limit, limit]; 0 <= limit <= 2^24, so every value is exact.
void fill_integer_fp32(float* data, std::size_t count, std::uint64_t key, std::size_t first,
                       int limit) noexcept;
void fill_integer_fp64(double* data, std::size_t count, std::uint64_t key, std::size_t first,
                       int limit) noexcept;

}  // namespace assay::kernels::host
