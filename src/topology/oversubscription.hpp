// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <set>
#include <vector>

#include "topology/topology.hpp"

namespace assay {

/// The CPUs that some ranks measure with.
inline std::set<int> cpus_of(const std::vector<int>& ranks, const Topology& topology) {
  std::set<int> cpus;
  for (const int rank : ranks) {
    const auto& own = topology.ranks[static_cast<std::size_t>(rank)].cpus;
    cpus.insert(own.begin(), own.end());
  }
  return cpus;
}

/// Ranks per CPU they may use on the node where this is worst, at least 1: how much longer than usual things
/// take where ranks share cores.
inline double oversubscription(const Topology& topology) {
  double worst = 1;
  for (const NodeKind& kind : topology.kinds()) {
    const std::vector<int> ranks = topology.ranks_of(kind.node);
    const std::set<int> cpus = cpus_of(ranks, topology);
    worst = std::max(worst, static_cast<double>(ranks.size()) /
                                static_cast<double>(std::max<std::size_t>(1, cpus.size())));
  }
  return worst;
}

}  // namespace assay
