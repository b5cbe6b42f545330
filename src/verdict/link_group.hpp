// SPDX-License-Identifier: Apache-2.0
// Links that have something in common, a rail or that they cross switches: whether all of them are slow
// beside other links.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "verdict/judgement.hpp"

namespace assay::verdict::network {

struct LinkGroup {
  std::vector<double> rates;  ///< log of each link's
  std::set<std::int32_t> ends;
  std::map<std::int32_t, std::vector<double>> of_node;
  std::map<std::int32_t, double> best_of_end;  ///< log of the rate of its fastest link
  double centre = 0;

  void add(const Judgement& j, const SeriesRow& row);
};

/// Below `other` by at least `least` (of the logarithm), and no end with any of its links much less: an end
/// that is fast with some partner is not slow, however many of these are. Less than `peers_small_deficit` is
/// also more than the nodes of both groups differ, at `network_alpha_warn` over so many groups.
bool slow_beside(const LinkGroup& group, const LinkGroup& other, double least, std::size_t groups);

}  // namespace assay::verdict::network
