// SPDX-License-Identifier: Apache-2.0
// Which links a run has exercised with messages between nodes, with how many bytes, and which it has not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "results/model.hpp"

namespace assay::verdict {

/// Traffic of a link, both directions.
struct LinkUse {
  double bytes = 0;
  bool known = true;            ///< false where it may have carried bytes that no record attributes to it
  std::set<std::string> cases;  ///< suite/name, without repeats
};

struct LinkCoverage {
  using Rows = std::pair<std::int32_t, std::int32_t>;  ///< of /entities, the smaller first
  std::map<Rows, LinkUse> nodes;                       ///< that were measured
  std::map<Rows, LinkUse> nics;  ///< that were measured by themselves, or are the only ones of their nodes
  std::size_t along_rails = 0;   ///< of `nics`: both ends have one name
  double node_pairs = 0, nic_pairs = 0;  ///< there are; of NICs: of one name on two nodes
  /// Of a NIC and its switch, where a topology was given; with no bytes where nothing is known to have gone
  /// over it. Where several NICs of a node may have carried a message, what they moved by their own counters
  /// counts.
  std::map<std::int32_t, LinkUse> cables;
  /// Pairs of switches that have NICs of one name; with no bytes where no measured pair crossed from one to
  /// the other. Links between switches are unknown.
  std::map<std::pair<std::string, std::string>, LinkUse> switches;

  /// Known to have carried nothing.
  static bool idle(const LinkUse& use) noexcept { return use.known && use.bytes == 0; }
  bool any() const noexcept { return !nodes.empty(); }
};

/// Pure. Pairs inside nodes and a NIC with itself are no links here.
LinkCoverage link_coverage(const results::Results& results);

}  // namespace assay::verdict
