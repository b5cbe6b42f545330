// SPDX-License-Identifier: Apache-2.0
#include "suites/allreduce/exact.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "base/random.hpp"

namespace assay::allreduce {
namespace {

/// b such that n (2^b - 1 + 2^b) < 2^24, at most 8 and at least 1 (enough for 2^22 ranks).
unsigned bits_for(int ranks) noexcept {
  unsigned bits = 8;
  while (bits > 1 && (static_cast<std::uint64_t>(ranks) << (bits + 1)) > (1u << 24)) --bits;
  return bits;
}

}  // namespace

ExactValues::ExactValues(std::uint64_t seed, int ranks, std::uint64_t iteration) noexcept
    : ranks_(ranks),
      bits_(bits_for(ranks)),
      key_(mix64(seed, iteration)),
      step_(static_cast<std::uint32_t>(mix64(key_, 1)) | 1u),
      start_(static_cast<std::uint32_t>(mix64(key_, 2))) {
  for (int rank = 0; rank < ranks_; ++rank) total_weight_ += weight(rank);
}

std::uint32_t ExactValues::weight(int rank) const noexcept {
  return 1u +
         static_cast<std::uint32_t>(mix64(key_, 16 + static_cast<std::uint64_t>(rank)) & ((1u << bits_) - 1));
}

ExactValues::Line ExactValues::contribution(int rank) const noexcept {
  return {1.0f, static_cast<float>(weight(rank))};
}
ExactValues::Line ExactValues::total() const noexcept {
  return {static_cast<float>(ranks_), static_cast<float>(total_weight_)};
}

float ExactValues::value(int rank, std::uint64_t index) const noexcept {
  float out = 0;
  write(contribution(rank), index, &out, 1);
  return out;
}

float ExactValues::sum(std::uint64_t index) const noexcept {
  float out = 0;
  write(total(), index, &out, 1);
  return out;
}

void ExactValues::write(Line line, std::uint64_t first, float* data, std::size_t count) const noexcept {
  // One addition, shift and conversion per element: the compiler makes vectors of it.
  std::uint32_t x = static_cast<std::uint32_t>(first) * step_ + start_;
  const unsigned shift = 32 - bits_;
  for (std::size_t i = 0; i < count; ++i) {
    data[i] = line.slope * static_cast<float>(static_cast<std::int32_t>(x >> shift)) + line.offset;
    x += step_;
  }
}

ExactErrors ExactValues::compare(Line line, std::uint64_t first, const float* data,
                                 std::size_t count) const noexcept {
  constexpr std::size_t block = 1024;
  std::array<float, block> expected;
  ExactErrors errors;
  for (std::size_t at = 0; at < count; at += block) {
    const std::size_t n = std::min(block, count - at);
    write(line, first + at, expected.data(), n);
    std::uint32_t different = 0;  // bits, not values: NaN and -0 count as wrong
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

void ExactValues::fill(int rank, std::uint64_t first, float* data, std::size_t count) const noexcept {
  write(contribution(rank), first, data, count);
}
ExactErrors ExactValues::check_sum(std::uint64_t first, const float* data, std::size_t count) const noexcept {
  return compare(total(), first, data, count);
}
ExactErrors ExactValues::check_value(int rank, std::uint64_t first, const float* data,
                                     std::size_t count) const noexcept {
  return compare(contribution(rank), first, data, count);
}

}  // namespace assay::allreduce
