// SPDX-License-Identifier: Apache-2.0
// Parts that become slower than their peers within a long case, or from file to file of a soak.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "results/model.hpp"
#include "verdict/snapshot.hpp"

namespace assay::verdict {

/// The median of what is not NaN; NaN where nothing is left.
double median_of_known(std::vector<double> values);

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
/// What all members lose together, of which drifters_of() knows nothing: the median over the members of their
/// distance from their own medians. Empty unless its first and last quarter differ by `least` (logarithmic)
/// and by `drift_common_deviations` of the steps from time to time, and nine tenths of the members show half
/// of that. Four times at least, any number of members.
std::optional<Fall> common_fall_of(std::vector<std::vector<double>> lines, double least);
/// Least squares of a level and a slope from `begin` on, or of two levels of which `begin` is the first of
/// the lower one, whichever leaves less. Change 0: the line does not fall.
Fall fall_of(std::span<const double> line);

/// Losses from segment to segment, in the order of `started`: WARN `drift` findings, one per part and, of
/// what all parts lose together, one per suite; the metric that lost most.
struct SegmentDrift {
  results::Finding finding;
  std::string part;  ///< kind and id, with a line break between; empty: all parts
};
std::vector<SegmentDrift> drift_over(const std::vector<Snapshot>& segments);

}  // namespace assay::verdict
