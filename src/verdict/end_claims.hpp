// SPDX-License-Identifier: Apache-2.0
// Which parts explain links beyond a bound (shared_end.hpp): what is claimed of switches, paths, nodes, ends.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "verdict/judgement.hpp"
#include "verdict/network_links.hpp"

namespace assay::verdict::shared_end {

/// across: all links between some switches; path: from one switch to another
enum class Level { across, leaf, path, node, end };

struct Link {
  const SeriesRow* row = nullptr;
  const Below* below = nullptr;  ///< null: within its bound
  std::int32_t part = -1;        ///< row of /entities that explains it
  bool counts = true;            ///< not what the retest cleared: near the bound it says nothing
};

struct EndClaim {
  std::int32_t part = -1, other = -1;  ///< of a path both switches
  std::vector<Link*> links;            ///< all of the part that are judged for it
  std::set<std::int32_t> switches;     ///< of what is across
  bool out = false, in = false;
  Level level = Level::end;
};

/// Takes the links for the parts that explain them, the worst first.
std::vector<EndClaim> claims_of(const Judgement& j, const network::Places& places, std::vector<Link>& links);

}  // namespace assay::verdict::shared_end
