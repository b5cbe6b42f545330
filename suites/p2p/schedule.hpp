// SPDX-License-Identifier: Apache-2.0
// Pairs and their order: pure functions, equal on all ranks for equal arguments.
#pragma once

#include <cstddef>
#include <vector>

#include "base/random.hpp"
#include "topology/topology.hpp"
#include "workload/pairs.hpp"

namespace assay::p2p {

using namespace workload;

using Schedule = std::vector<Round>;

inline constexpr int max_full_local_ranks = 16;  ///< in a node: above, pairs are sampled by NUMA class
inline constexpr int max_full_nodes = 64;        ///< across nodes: above, rounds are sampled
inline constexpr int sampled_rounds = 8;  ///< random matchings; within one NUMA domain when inside a node
inline constexpr int sampled_near_rounds =
    4;  ///< neighbours across nodes; across NUMA domains when inside a node

/// All pairs of `items` by the circle method: n-1 rounds for even n, n rounds (one bye each) for odd n, no
/// rounds for fewer than two.
Schedule tournament(const std::vector<int>& items);

/// Rounds of the ranks of one node. `numa[i]` is the domain of ranks[i] (-1 = spans several). Up to 16 ranks:
/// the whole tournament in an order drawn from `random`. Above: 8 matchings within the domains and 4 across
/// them. No two meet twice. At most `max_rounds`.
Schedule node_schedule(const std::vector<int>& ranks, const std::vector<int>& numa,
                       const RandomStream& random, std::size_t max_rounds);

/// Which ranks of two nodes that meet exchange: all, or one of each, the next one in the next round.
enum class Lanes { all, in_turn };

/// All pairs of nodes in rounds of disjoint ones, in an order drawn from `random`. Rounds are made when asked
/// for: of 12,500 nodes they hold 78 million pairs.
class Meetings {
 public:
  Meetings(std::size_t nodes, const RandomStream& random);
  std::size_t rounds() const noexcept { return order_.size(); }
  Round nodes_of(std::size_t round) const;
  /// The node that `node` meets in a round; -1: none, with an odd number of nodes.
  int partner_of(std::size_t round, int node) const;

 private:
  std::vector<int> players_;         ///< nodes by place in the circle
  std::vector<std::size_t> places_;  ///< and back
  std::vector<std::size_t> order_;   ///< turns of the circle, by round
};

/// Rounds across nodes: nodes are matched, and local rank k of one is paired with local rank k of the other.
/// Up to 64 nodes: the whole tournament in an order drawn from `random`. Above: 8 distinct rounds of a
/// tournament of shuffled nodes, and 4 matchings of nodes at distance 1, 2, 4 and 8 in launch order, which
/// mostly share a switch. No two meet twice. At most `max_rounds`. `leaves` (by node, -1 = unknown; may be
/// empty) are the nodes' switches: where there are two or more and not all pairs are met, 8 rounds of pairs
/// that cross switches and 4 of pairs that do not take their place, in an order of which the first 10 hold 6
/// and 4. `meetings`: the first rounds of Meetings.
Schedule cross_schedule(const std::vector<std::vector<int>>& ranks_by_node, const RandomStream& random,
                        std::size_t max_rounds, const std::vector<int>& leaves = {}, Lanes lanes = Lanes::all,
                        bool meetings = false);

/// Inside nodes, across nodes, or of a NIC with itself.
enum class Scope { node, cross, loopback };

/// The schedule of all ranks for a scope (none for loopback, which needs a NIC). Nodes run theirs side by
/// side, so round r holds the pairs of every node.
Schedule make_schedule(Scope scope, const Topology& topology, const RandomStream& random,
                       std::size_t max_rounds, Lanes lanes = Lanes::all, bool meetings = false);

/// How many rounds the full or sampled schedule of a scope has (one of loopback): independent of the random
/// stream.
std::size_t round_count(Scope scope, const Topology& topology);

std::size_t pair_count(const Schedule& schedule) noexcept;
/// Of make_schedule() with these arguments, without making the pairs of all ranks. `leaves`: leaf_of_nodes()
/// of the topology.
std::size_t pair_count(Scope scope, const Topology& topology, const RandomStream& random,
                       std::size_t max_rounds, const std::vector<int>& leaves, Lanes lanes = Lanes::all,
                       bool meetings = false);

}  // namespace assay::p2p
