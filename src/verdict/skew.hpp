// SPDX-License-Identifier: Apache-2.0
// Skewed populations: most parts are near a common ceiling (a power cap, a link), the others in a tail below
// it. There a part far below the others is the end of the tail, and no outlier.
#pragma once

#include <cstddef>
#include <span>

namespace assay::verdict {

/// For a slow half that is wider than the fast one.
struct Skew {
  double evidence = 0;  ///< in standard errors
  double ratio = 0;     ///< log of the deviation of the slow half over that of the fast one
};

/// How the halves of a population are spread.
struct Halves {
  double median = 0, slow = 0, fast = 0;  ///< deviations about the median
  Skew skew;
};

/// Of `sorted` values (ascending). Those below a gap that no tail has are left out: they are another matter.
Halves halves_of(std::span<const double> sorted);
/// Of all of them.
Halves halves_of_all(std::span<const double> sorted);

/// Factor by which `value` lies nearer, in deviations of the slow half, than a `score` of other deviations
/// says. How much of it counts depends on the evidence `own`. `shared` is what other metrics of the same
/// parts say: of a few parts one alone may be in the tail. Not under 1.
double nearer_by(double value, double score, const Halves& halves, double own, const Skew& shared) noexcept;

}  // namespace assay::verdict
