// SPDX-License-Identifier: Apache-2.0
// Metrics over many runs, with the dates of lasting changes.
#pragma once

#include <string>
#include <vector>

#include "verdict/snapshot.hpp"

namespace assay::verdict {

/// Of a metric, so that a change in it can be told: three before it and two after it.
inline constexpr std::size_t least_runs_of_change = 5;

struct TrendPoint {
  std::size_t run = 0;                   ///< position among the runs
  double low = 0, median = 0, high = 0;  ///< over the parts: 5 %, 50 %, 95 %
  std::size_t parts = 0;
};

/// A step in a line of values: before it one median, from it on another.
struct TrendChange {
  std::string name;                   ///< of the part; "fleet" for what all parts did
  std::size_t run = 0;                ///< first run after the step
  double change = 0;                  ///< of the rate, as a fraction: below 0 is slower
  std::size_t before = 0, after = 0;  ///< runs on either side
};

struct TrendMetric {
  std::string metric, case_key, unit;
  std::vector<TrendPoint> points;
  std::vector<TrendChange> changes;  ///< the largest first
};

/// Pure. Metrics that at least two runs have; a step is reported from 2 % on if it is more than 6 robust
/// deviations of the values around their two medians, with three runs before and two after it. Steps of parts
/// are those that the fleet did not take. A part is compared with itself only: who takes part in a run is no
/// step of the fleet, nor of the others. Ranks of a collective are the same part among the same ranks only.
std::vector<TrendMetric> trend_of(const std::vector<Snapshot>& runs);

}  // namespace assay::verdict
