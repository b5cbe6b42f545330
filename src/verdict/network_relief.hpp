// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "verdict/network_links.hpp"

namespace assay::verdict::network {

/// Removes findings of links, and of nodes by their links, that a switch which fails explains, or a path
/// between two: links that cross it, whatever they are held against, and nodes below it that are no slower
/// across it than the others below it are. Their partners and they themselves are not at fault.
void relieve_by_switches(Judgement& j, const Places& places);

}  // namespace assay::verdict::network
