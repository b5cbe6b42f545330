// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>

#include "verdict/network_links.hpp"

namespace assay::verdict::network {

/// Removes findings of links, and of nodes by their links, that a switch which fails explains, or a path
/// between two: links that cross it, whatever they are held against, and nodes below it that are no slower
/// across it than the others below it are. Their partners and they themselves are not at fault.
void relieve_by_switches(Judgement& j, const Places& places);

/// Whether it is a finding of the cluster whose members are switches.
bool is_about_switches(const Judgement& j, const results::Finding& f);

/// Removes findings of links between these switches that miss a physical floor or differ from their past, and
/// of their paths. Whether one of them was a FAIL.
bool relieve_across(Judgement& j, const Places& places, const std::set<std::int32_t>& switches);

/// Removes findings of links that miss a physical floor and are all about `own` rows, or links between these:
/// another finding tells why. Whether one of them was a FAIL.
bool fold_floors(Judgement& j, std::set<std::int32_t> own);

}  // namespace assay::verdict::network
