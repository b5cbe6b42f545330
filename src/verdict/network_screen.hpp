// SPDX-License-Identifier: Apache-2.0
// Screening of all link series of a file.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "verdict/network_levels.hpp"
#include "verdict/network_links.hpp"

namespace assay::verdict::network {

/// Half or more of the servers of storage that are slower than the fastest for all clients; ends of a
/// LinkSet.
struct SlowerServers {
  std::vector<int> slower;
  int faster = -1;
  double deficit = 0;  ///< the largest, of the logarithm
  std::size_t clients = 0, servers = 0;
};
std::optional<SlowerServers> slower_servers(const LinkSet& set);

/// One series and scope with its suspects.
struct Screened {
  LinkSet set;
  std::vector<SlowPlace> suspects;
  std::size_t units = 0;  ///< nodes (across) or devices (inside)
  bool small() const;     ///< too few for a robust population
  std::optional<SlowerServers> apart = {};
};

/// Series of kind `link` that are judged, as `collect_series` made them.
std::vector<Screened> screen(const Judgement& j, const Places& places);

/// One finding `split`, INCONCLUSIVE, of each suite.
void add_slower_servers(Judgement& j, const std::vector<Screened>& screened);

/// Of each suspect, whether its ends are kept out of the controls: all, where enough pairs without a suspect
/// are left. In a small network with fewer, the weakest become controls, which makes the deficits of the
/// others smaller, never larger.
std::vector<bool> no_controls(const Screened& screened);

/// Ends of a leaf, node or end; both ends of a pair.
std::vector<int> ends_of(const LinkSet& set, const SlowPlace& s);

}  // namespace assay::verdict::network
