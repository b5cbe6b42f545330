// SPDX-License-Identifier: Apache-2.0
#include "workload/exact.hpp"

#include "base/random.hpp"

namespace assay::workload {
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

ExactLine ExactValues::contribution(int rank) const noexcept {
  return {1.0f, static_cast<float>(weight(rank)), step_, start_, bits_};
}
ExactLine ExactValues::total() const noexcept {
  return {static_cast<float>(ranks_), static_cast<float>(total_weight_), step_, start_, bits_};
}

float ExactValues::value(int rank, std::uint64_t index) const noexcept {
  float out = 0;
  fill(rank, index, &out, 1);
  return out;
}

float ExactValues::sum(std::uint64_t index) const noexcept {
  float out = 0;
  kernels::host::exact_fill(total(), index, &out, 1);
  return out;
}

void ExactValues::fill(int rank, std::uint64_t first, float* data, std::size_t count) const noexcept {
  kernels::host::exact_fill(contribution(rank), first, data, count);
}
ExactErrors ExactValues::check_sum(std::uint64_t first, const float* data, std::size_t count) const noexcept {
  return kernels::host::exact_check(total(), first, data, count);
}
ExactErrors ExactValues::check_value(int rank, std::uint64_t first, const float* data,
                                     std::size_t count) const noexcept {
  return kernels::host::exact_check(contribution(rank), first, data, count);
}

}  // namespace assay::workload
