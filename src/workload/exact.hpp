// SPDX-License-Identifier: Apache-2.0
// fp32 data whose sum over ranks is exact in any order and known in closed form.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/exact.hpp"

namespace assay::workload {

using kernels::ExactErrors;
using kernels::ExactLine;

/// The contributions of one iteration: value(rank, i) = h(i) + w(rank), with h(i) the top b bits of A i + C
/// modulo 2^32 (A odd; A and C drawn from seed and iteration) and w(rank) drawn from 1..2^b. All are
/// integers, and b is chosen so that the sum over all ranks stays below 2^24: every partial sum is exact in
/// fp32, in any order. The sum is n h(i) + W with W the sum of w. A missing, doubled or stale contribution
/// changes W; an element of another place changes h; both are compared bit by bit.
class ExactValues {
 public:
  ExactValues(std::uint64_t seed, int ranks, std::uint64_t iteration) noexcept;

  float value(int rank, std::uint64_t index) const noexcept;
  float sum(std::uint64_t index) const noexcept;

  /// Writes the contribution of `rank` at elements [first, first + count).
  void fill(int rank, std::uint64_t first, float* data, std::size_t count) const noexcept;
  /// Compares with the sum over all ranks, or with the contribution of one. `first_index` of the answer
  /// counts from `data`.
  ExactErrors check_sum(std::uint64_t first, const float* data, std::size_t count) const noexcept;
  ExactErrors check_value(int rank, std::uint64_t first, const float* data, std::size_t count) const noexcept;

  /// The contribution of `rank`, and the sum over all ranks, for kernels that write and compare.
  ExactLine contribution(int rank) const noexcept;
  ExactLine total() const noexcept;

 private:
  std::uint32_t weight(int rank) const noexcept;

  int ranks_;
  unsigned bits_;
  std::uint64_t key_;
  std::uint32_t step_, start_;
  std::uint64_t total_weight_ = 0;
};

}  // namespace assay::workload
