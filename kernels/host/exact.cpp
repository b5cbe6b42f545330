// SPDX-License-Identifier: Apache-2.0
#include "kernels/exact.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace assay::kernels::host {
namespace {

bool blocks_differ(const float* expected, const float* data, std::size_t count) noexcept {
  std::uint32_t different = 0;
  for (std::size_t i = 0; i < count; ++i)
    different |= std::bit_cast<std::uint32_t>(expected[i]) ^ std::bit_cast<std::uint32_t>(data[i]);
  return different != 0;
}

}  // namespace

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
  return exact_check(line, first, data, count, blocks_differ);
}

ExactErrors exact_check(const ExactLine& line, std::uint64_t first, const float* data, std::size_t count,
                        BlocksDiffer differ) noexcept {
  constexpr std::size_t block = 1024;
  std::array<float, block> expected;
  ExactErrors errors;
  const auto note = [&errors](std::size_t index, std::uint32_t want, std::uint32_t have) {
    if (errors.count++ > 0) return;
    errors.first_index = index;
    errors.expected = want;
    errors.actual = have;
  };
  for (std::size_t at = 0; at < count; at += block) {
    const std::size_t n = std::min(block, count - at);
    exact_fill(line, first + at, expected.data(), n);
    if (!differ(expected.data(), data + at, n)) continue;
    const std::uint64_t before = errors.count;
    for (std::size_t i = 0; i < n; ++i) {
      const auto want = std::bit_cast<std::uint32_t>(expected[i]);
      const auto have = std::bit_cast<std::uint32_t>(data[at + i]);
      if (want != have) note(at + i, want, have);
    }
    // Wrong when first read, right when looked at again: a bad read or a bad comparison, and an error all the
    // same.
    const auto want = std::bit_cast<std::uint32_t>(expected[0]);
    if (errors.count == before) note(at, want, want);
  }
  return errors;
}

}  // namespace assay::kernels::host
