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
  double worst = 1;
  for (const NodeKind& kind : topology.kinds()) {
    const std::vector<int> ranks = topology.ranks_of(kind.node);
    const std::set<int> cpus = topology.cpus_of(ranks);
    worst = std::max(worst, static_cast<double>(ranks.size()) /
                                static_cast<double>(std::max<std::size_t>(1, cpus.size())));
  }
  return worst;
}

}  // namespace assay
