// SPDX-License-Identifier: Apache-2.0
#include "suite/partner.hpp"

#include <gtest/gtest.h>

#include <set>

namespace assay {
namespace {

/// Ranks on these nodes, in order.
Topology ranks_on(const std::vector<int>& nodes) {
  Topology topology;
  std::vector<int> local;
  for (const int node : nodes) {
    RankPlace place;
    place.rank = topology.size();
    place.node = node;
    local.resize(std::max(local.size(), static_cast<std::size_t>(node) + 1));
    place.local_rank = local[static_cast<std::size_t>(node)]++;
    topology.ranks.push_back(place);
  }
  topology.nodes.resize(local.size());
  for (RankPlace& place : topology.ranks) place.local_size = local[static_cast<std::size_t>(place.node)];
  return topology;
}

TEST(Partner, IsOnTheNextNodeHoweverRanksAreNumbered) {
  for (const auto& nodes : {std::vector<int>{0, 0, 1, 1, 2, 2}, std::vector<int>{0, 1, 2, 0, 1, 2},
                            std::vector<int>{2, 0, 1, 1, 0, 2}}) {
    const Topology topology = ranks_on(nodes);
    for (const RankPlace& place : topology.ranks) {
      const auto& other =
          topology.ranks[static_cast<std::size_t>(partner_on_other_node(topology, place.rank))];
      EXPECT_EQ(other.node, (place.node + 1) % 3);
      EXPECT_EQ(other.local_rank, place.local_rank);
    }
  }
}

TEST(Partner, IsAnotherRanksNever) {
  for (const auto& nodes : {std::vector<int>{0, 0, 0, 1, 1, 2}, std::vector<int>{0, 1, 1, 2, 0, 0, 2},
                            std::vector<int>{0, 0, 0, 1}, std::vector<int>{0, 0, 0}, std::vector<int>{0}}) {
    const Topology topology = ranks_on(nodes);
    std::set<int> read;
    for (const RankPlace& place : topology.ranks) {
      const int other = partner_on_other_node(topology, place.rank);
      EXPECT_TRUE(read.insert(other).second) << "each rank's data are read";
      EXPECT_EQ(other == place.rank, topology.size() == 1);
      if (2 * topology.max_local_size() <= topology.size()) {
        EXPECT_NE(topology.ranks[static_cast<std::size_t>(other)].node, place.node);
      }
    }
  }
}

}  // namespace
}  // namespace assay
