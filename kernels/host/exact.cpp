// SPDX-License-Identifier: Apache-2.0
#include "kernels/exact.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace assay::kernels::host {

void exact_fill(const ExactLine& line, std::uint64_t first, float* data, std::size_t count) noexcept {
  // One addition, shift and conversion per element: the compiler makes vectors of it.
  std::uint32_t x = static_cast<std::uint32_t>(first) * line.step + line.start;
  const unsigned shift = 32 - line.bits;
  for (std::size_t i = 0; i < count; ++i) {
    data[i] = line.slope * static_cast<float>(static_cast<std::int32_t>(x >> shift)) + line.offset;
    x += line.step;
  }
}

ExactErrors exact_check(const ExactLine& line, std::uint64_t first, const float* data,
                        std::size_t count) noexcept {
  constexpr std::size_t block = 1024;
  std::array<float, block> expected;
  ExactErrors errors;
  for (std::size_t at = 0; at < count; at += block) {
    const std::size_t n = std::min(block, count - at);
    exact_fill(line, first + at, expected.data(), n);
    std::uint32_t different = 0;
    for (std::size_t i = 0; i < n; ++i)
      different |= std::bit_cast<std::uint32_t>(expected[i]) ^ std::bit_cast<std::uint32_t>(data[at + i]);
    if (different == 0) continue;
    for (std::size_t i = 0; i < n; ++i) {
      const auto want = std::bit_cast<std::uint32_t>(expected[i]);
      const auto have = std::bit_cast<std::uint32_t>(data[at + i]);
      if (want == have) continue;
      if (errors.count++ == 0) {
        errors.first_index = at + i;
        errors.expected = want;
        errors.actual = have;
      }
    }
  }
  return errors;
}

}  // namespace assay::kernels::host
