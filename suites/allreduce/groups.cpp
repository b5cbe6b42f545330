// SPDX-License-Identifier: Apache-2.0
#include "suites/allreduce/groups.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "topology/fabric.hpp"

namespace assay::allreduce {
namespace {

/// One of 2^draw parts for every node: nodes of one switch are neighbours, else those next to each other in
/// the job.
std::vector<int> equal_parts(const Topology& topology, int draw) {
  const std::size_t nodes = topology.nodes.size();
  const auto leaf = leaf_of_nodes(topology);
  std::vector<std::size_t> order(nodes);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return leaf[a] < leaf[b]; });
  std::vector<int> part(nodes);
  for (std::size_t i = 0; i < nodes; ++i) part[order[i]] = static_cast<int>((i << draw) / nodes);
  return part;
}

}  // namespace

int rails(const Topology& topology) {
  int least = std::numeric_limits<int>::max();
  for (const RankPlace& place : topology.ranks) least = std::min(least, place.local_size);
  return topology.ranks.empty() ? 0 : least;
}

int draws_of(Division division, Level level, const Topology& topology) {
  if (division != Division::halves) return level >= Level::extended ? 8 : 4;
  int sizes = 1;
  while (topology.nodes.size() >> sizes >= 2) ++sizes;
  return sizes;
}

RandomStream group_stream(std::uint64_t seed, const std::string& case_name) {
  return RandomStream(seed, "allreduce/groups").child(case_name);
}

std::vector<int> groups_of(Division division, const Topology& topology, const RandomStream& random,
                           int draw) {
  const auto of_node = division == Division::halves
                           ? equal_parts(topology, draw)
                           : random_groups(topology.nodes.size(), group_nodes, random, draw);
  const int lanes = division == Division::rails ? rails(topology) : 1;
  std::vector<int> groups;
  for (const RankPlace& place : topology.ranks) {
    const int group = of_node[static_cast<std::size_t>(place.node)];
    const bool out = group < 0 || (division == Division::rails && place.local_rank >= lanes);
    groups.push_back(out ? -1 : division == Division::rails ? group * lanes + place.local_rank : group);
  }
  return groups;
}

}  // namespace assay::allreduce
