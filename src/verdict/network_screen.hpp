// SPDX-License-Identifier: Apache-2.0
// Screening of all link series of a file.
#pragma once

#include <vector>

#include "verdict/network_levels.hpp"
#include "verdict/network_links.hpp"

namespace assay::verdict::network {

/// One series and scope with its suspects.
struct Screened {
  LinkSet set;
  std::vector<SlowPlace> suspects;
  std::size_t units = 0;  ///< nodes (across) or devices (inside)
  double usual = 0;       ///< median log rate, as measured, of pairs without a suspect; NaN with few of them
  bool small() const;     ///< too few for a robust population
};

/// Series of kind `link` that are judged, as `collect_series` made them.
std::vector<Screened> screen(const Judgement& j, const Places& places);

/// Ends of a leaf, node or end; both ends of a pair.
std::vector<int> ends_of(const LinkSet& set, const SlowPlace& s);

}  // namespace assay::verdict::network
