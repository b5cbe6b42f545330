// SPDX-License-Identifier: Apache-2.0
// Links beyond a bound with one part in common are attributed to that part: switch, node or NIC.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "verdict/judgement.hpp"

namespace assay::verdict {

/// Takes the links that a common part explains out of `below` (links of `s` beyond their bound) and `all` and
/// adds one finding for each such part: at least three quarters of what it sends, of what it receives, or of
/// both, is below, to two partners at least (without those of parts that are found already to one that is as
/// it should be with others), and most links that touch none of these parts are not. Highest level first:
/// switch (where all paths between switches are slow alike: all of these), path between two switches (which
/// shows at each end), node, NIC or device. The finding is that of the part's median link.
void explain_by_ends(Judgement& j, const Series& s, std::vector<const SeriesRow*>& all,
                     std::vector<Below>& below, const std::string& reference_kind, const std::string& what);

}  // namespace assay::verdict
