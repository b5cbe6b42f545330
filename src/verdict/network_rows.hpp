// SPDX-License-Identifier: Apache-2.0
// Rows of links on their way to pairs: log rates by round, what their classes have in common, taken out.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "results/model.hpp"

namespace assay::verdict::network {

/// The samples that one row has of one round.
struct Measured {
  std::int32_t entity = -1, source = -1, destination = -1;
  int round = 0;
  double y = 0, best = 0;  ///< log rate: median and best sample
  std::int32_t n = 0;
};

/// One row of one pass, on its way to a pair.
struct Raw {
  Measured m;
  int pass = 0, cls = 0;
  std::pair<int, int> places{-1, -1};  ///< switches of source and destination
};

/// What pairs must have in common for their rates to be compared: the series' stratum, and whether they stay
/// in one place (below a switch; inside a node: in a NUMA domain). Places are -1 where unknown.
int class_of(std::int32_t stratum, int place_a, int place_b);

/// The rows of a case, by round.
std::vector<Measured> measured(const results::CaseData& c, const std::string& metric, results::Better better);

/// Takes out what the rows of a round have in common; returns the median of that. Where rounds are too small
/// to tell anything, or most links may be slow since they cross one of few switches, the class stands for
/// them, by what its upper quartile reaches.
double centre(std::vector<Raw>& raw, bool few_switches);

/// What links across switches lose beside those below one on every path: a slow switch slows some of them.
double loss_across(const std::vector<Raw>& raw);

}  // namespace assay::verdict::network
