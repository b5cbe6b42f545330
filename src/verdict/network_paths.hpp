// SPDX-License-Identifier: Apache-2.0
// What pairs tell of switches, and of paths between two of them: deficits are differences of natural
// logarithms.
#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "verdict/network_links.hpp"

namespace assay::verdict::network {

struct LeafView {
  std::set<int> nodes;
  std::set<int> partners;  ///< switches
  int fabric = -1;         ///< the first of the switches that links join, as those of one rail
  std::size_t joined = 0;  ///< how many these are
  /// A switch of one node is not told from it.
  bool several() const { return nodes.size() > 1; }
  /// What crosses to one other switch only, as between the two of a rail, crosses both: the path is slow, and
  /// pairs do not tell which of them.
  bool told_apart() const { return several() && partners.size() > 1; }
};

/// By leaf index.
std::vector<LeafView> leaf_views(const LinkSet& set);

/// Deficits by leaf index, from and to.
using Paths = std::map<std::pair<int, int>, double>;

/// Paths that are slower than the better ones, between switches that are not told apart, or of which there
/// are too few to name one that is a little slow. A node most of whose pairs take such a path is not slow.
Paths slow_paths(const LinkSet& set, const std::vector<LeafView>& views);

/// Takes what paths cost off the pairs that take them; with sign -1 gives it back.
void shift_paths(LinkSet& set, const Paths& paths, double sign);

}  // namespace assay::verdict::network
