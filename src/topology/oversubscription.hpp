// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <set>
#include <vector>

#include "topology/topology.hpp"

namespace assay {

/// Ranks per CPU they may use on the node where this is worst, at least 1: how much longer than usual things
/// take where ranks share cores.
inline double oversubscription(const Topology& topology) {
  std::vector<std::set<int>> cpus(topology.nodes.size());
  std::vector<double> ranks(topology.nodes.size(), 0.0);
  for (const RankPlace& place : topology.ranks) {
    const auto node = static_cast<std::size_t>(place.node);
    cpus[node].insert(place.cpus.begin(), place.cpus.end());
    ranks[node] += 1;
  }
  double worst = 1;
  for (std::size_t node = 0; node < cpus.size(); ++node)
    worst = std::max(worst, ranks[node] / static_cast<double>(std::max<std::size_t>(1, cpus[node].size())));
  return worst;
}

}  // namespace assay
