// SPDX-License-Identifier: Apache-2.0
// Links and the network: slow parts, found from sampled pairs. Required of a case:
//
// - kind `link`, one row per directed pair: `source` and `destination` are devices or NICs (rows of
// /entities). Both
//   directions of a pair are rows of their own where both were measured.
// - optional covariate metric `round` (unit count) [entity] or [entity, sample]: which round of concurrent
// pairs the row
//   (or sample) belongs to. Common effects of a round are then removed. Without it all rows count as one
//   round.
// - /inventory/nic text columns `switch` and `rail` (from --topology): without `switch` no leaf is ever
// named.
#pragma once

#include <vector>

#include "verdict/judgement.hpp"

namespace assay::verdict {

/// Judges every series of kind `link` against its peers: switch, then node, then NIC or device, then pair,
/// each finding at the highest of these that explains the data, one finding per part over all series. Uses
/// the retest cases
/// (`.cK`) where there are any: FAIL only with them. Needs collect_series; runs after limits and physical
/// floors, whose findings about single links it takes off the partners of a part that is named here.
void judge_network(Judgement& j);

/// Names all links across switches, if they are slow beside those below one switch and no switch is named
/// (across_switches.cpp; runs after judge_network).
void judge_across_switches(Judgement& j);

/// Says that links between nodes are two populations far apart, if nobody is named for it
/// (unlike_links.cpp; runs after all other rules of links).
void judge_unlike_links(Judgement& j);

}  // namespace assay::verdict
