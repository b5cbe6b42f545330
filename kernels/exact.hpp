// SPDX-License-Identifier: Apache-2.0
// fp32 data for sums that are exact in any order (collective/exact.hpp says why).
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::kernels {

/// Element i is slope * h(i) + offset, with h(i) the top `bits` bits of i * step + start modulo 2^32. All are
/// integers below 2^24, so nothing is rounded.
struct ExactLine {
  float slope = 1, offset = 0;
  std::uint32_t step = 1, start = 0;
  unsigned bits = 8;
};

struct ExactErrors {
  std::uint64_t count = 0;  ///< elements whose bits differ
  std::uint64_t first_index = 0;
  std::uint32_t expected = 0, actual = 0;  ///< bits of the first one
};

// Elements [first, first + count) of a line; `first_index` counts from `data`. Bits are compared, not values:
// NaN and -0 are wrong.
namespace host {
void exact_fill(const ExactLine& line, std::uint64_t first, float* data, std::size_t count) noexcept;
/// A block that differs, of which no element does when they are looked at one by one, counts as one: its
/// first, with `actual` equal to `expected`.
ExactErrors exact_check(const ExactLine& line, std::uint64_t first, const float* data,
                        std::size_t count) noexcept;
/// Whether the bits of a block differ.
using BlocksDiffer = bool (*)(const float* expected, const float* data, std::size_t count) noexcept;
/// The same with another comparison of blocks, for tests of a bad one.
ExactErrors exact_check(const ExactLine& line, std::uint64_t first, const float* data, std::size_t count,
                        BlocksDiffer differ) noexcept;
}  // namespace host
namespace cuda {
/// `data` is device memory, 4-byte aligned (16-byte accesses where its start allows).
void exact_fill(const ExactLine& line, std::uint64_t first, float* data, std::size_t count, void* stream);
/// Sets `*errors` (device memory). `actual` is read again after all have been looked at.
void exact_check(const ExactLine& line, std::uint64_t first, const float* data, std::size_t count,
                 ExactErrors* errors, void* stream);
}  // namespace cuda
}  // namespace assay::kernels
