// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "topology/topology.hpp"

namespace assay {

/// The rank of another node whose data `rank` reads, each rank's by one other: local rank k of the next node,
/// where all have as many ranks, however these are numbered. On one node the next rank. A node of more than
/// half of the ranks reads some of its own.
inline int partner_on_other_node(const Topology& topology, int rank) {
  std::vector<int> by_node;
  for (std::size_t node = 0; node < topology.nodes.size(); ++node)
    for (const int r : topology.ranks_of(static_cast<int>(node))) by_node.push_back(r);
  const std::size_t size = by_node.size();
  const auto step = static_cast<std::size_t>(topology.max_local_size());
  const auto at = static_cast<std::size_t>(std::find(by_node.begin(), by_node.end(), rank) - by_node.begin());
  return by_node[(at + (step % size != 0 ? step : 1)) % size];
}

}  // namespace assay
