// SPDX-License-Identifier: Apache-2.0
// By how much one group of values lies above another, and how surely.
#pragma once

#include <span>

namespace assay::verdict {

/// A shift with two intervals around it and the two-sided p-value of no shift at all. NaN for too few values.
struct Shift {
  double estimate, low, high;      ///< interval of level 1 - alpha
  double narrow_low, narrow_high;  ///< of level 1 - 2 alpha: both one-sided tests at alpha (Schuirmann 1987)
  double p;
  const char* method;
};

/// Fewest values of a side for which the intervals come from the exact permutation distribution of the ranks;
/// below it, where that has too few steps, from Student's t. Signed ranks have fewer steps
/// than rank sums.
inline constexpr std::size_t permutation_min = 8, signed_permutation_min = 10;

/// How far `b` lies above `a`: median of all differences b - a (Hodges and Lehmann 1963), the interval by
/// inverting the rank-sum test, whose null distribution is that over all permutations of the labels; Welch
/// 1947 for small groups.
Shift two_sample_shift(std::span<const double> a, std::span<const double> b, double alpha);

/// How far differences of the same units lie above 0: median of all averages of two of them, the interval by
/// inverting the signed-rank test, whose null distribution is that over all changes of sign; the paired
/// t-test for few.
Shift paired_shift(std::span<const double> differences, double alpha);

}  // namespace assay::verdict
