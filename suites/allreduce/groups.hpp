// SPDX-License-Identifier: Apache-2.0
// Who works with whom where a collective runs in several groups side by side, again and again in other ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "suite/suite.hpp"

namespace assay::allreduce {

enum class Division {
  groups,  ///< random groups of 4 nodes with all their ranks, drawn anew each time
  rails,   ///< the same nodes, but the ranks with the same local rank by themselves: group number = rails x
           ///< node group + rail
  halves,  ///< all nodes, their halves, quarters, ... down to two nodes: neighbours (below one switch) stay
           ///< together longest
};

inline constexpr std::size_t group_nodes = 4;  ///< nodes of a random group
inline constexpr std::size_t least_group_nodes =
    8;  ///< nodes from which random groups say more than the world

/// Local ranks that every node has: rail k is local rank k of all nodes, as for the NIC or GPU next to it.
int rails(const Topology& topology);

/// How often the ranks are divided; of halves one for each size.
int draws_of(Division division, Level level, const Topology& topology);

RandomStream group_stream(std::uint64_t seed, const std::string& case_name);

/// The group of every rank in one draw; -1: it takes no part this time.
std::vector<int> groups_of(Division division, const Topology& topology, const RandomStream& random, int draw);

}  // namespace assay::allreduce
