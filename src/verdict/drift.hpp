// SPDX-License-Identifier: Apache-2.0
// Parts that become slower than their peers within a long case, or from file to file of a soak.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "results/model.hpp"
#include "verdict/snapshot.hpp"

namespace assay::verdict {

/// One line of log rates that is level up to `begin` and falls from there on.
struct Drifter {
  std::size_t member = 0;
  std::size_t begin = 0;      ///< position in the line
  double change = 0;          ///< from there to its end, by the slope, logarithmic: below 0 is slower
  double least_of_peers = 0;  ///< of the peer that lost most: its last quarter less its first
};

/// `lines`: log rates [member][time] of members that were measured at the same times; NaN where one was not.
/// The common loss is removed (the median of every time). Named are members that lose `delta_drift` and whose
/// change from the first to the last quarter is abnormal among those of all at `alpha`, heavy tails assumed.
/// Six members and four times at least; fewer give none.
std::vector<Drifter> drifters_of(std::vector<std::vector<double>> lines, double alpha);

struct Fall {
  std::size_t begin = 0;  ///< position from which on the line falls
  double change = 0;      ///< from there to its end
};
/// Least squares of a level and a slope from `begin` on.
Fall fall_of(std::span<const double> line);

/// Losses of parts from segment to segment: WARN `drift` findings, one per part, the metric that lost most.
/// In the order of `started`.
struct SegmentDrift {
  results::Finding finding;
  std::string part;  ///< kind and id, with a line break between
};
std::vector<SegmentDrift> drift_over(const std::vector<Snapshot>& segments);

}  // namespace assay::verdict
