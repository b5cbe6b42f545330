// SPDX-License-Identifier: Apache-2.0
// Collectives over random groups of nodes: a slow node makes all its groups slow; other nodes are slow only
// in a group with it. Required of a case of stage `groups` and kind `device`: a covariate `group` [entity,
// sample], 1,000,000 x draw + group; repeats with the same case_key are further draws, and so are retest
// cases (.cK).
#pragma once

#include <set>
#include <vector>

#include "verdict/judgement.hpp"

namespace assay::verdict {

/// Names nodes that slow their groups, unless their pairs named them already (runs after judge_network).
void judge_collectives(Judgement& j);

/// A finding about rail `number`, as bad as `severity` says. `who` of every node it is ("local rank"), in
/// which of its `measured` it is slow ("groups"), and how many `samples` of what ("groups") say so.
struct RailClaim {
  const char* severity = "WARN";
  int number = 0;
  double value = 0, reference = 0, deficit = 0;
  std::size_t samples = 0;
  const char *who, *measured, *of;
};
results::Finding about_rail(const Judgement& j, const Series& s, const RailClaim& claim,
                            const std::set<std::int32_t>& members);

/// Rails (parameter `rails`) all of whose groups are slow beside the other rails (rails.cpp).
void judge_rails(Judgement& j);

/// Rails all of whose pairs are slow beside those of the other rails (rail_pairs.cpp): their links become a
/// stratum of their own, before anything is compared; and findings about them, which replace those of other
/// rules that say the same (runs after judge_network).
void find_slow_rails(Judgement& j);
void judge_slow_rails(Judgement& j);

/// Locates a slow collective of all nodes that no other rule explains (bisection.cpp); from its retest case
/// of variant "halves".
void judge_bisection(Judgement& j);

/// Whether one of the ranks of a node (-1: of any) lacked its core: the scheduler then decides how long all
/// others wait.
bool waits_for_a_core(const Judgement& j, const Series& s, std::int32_t node);

/// Collectives that are slower than anything plausible (collective_bounds.cpp): INCONCLUSIVE.
void judge_collective_bounds(Judgement& j);

/// Ranks that take longer than the others in the same operations and training steps, and those that come late
/// to them (in_step.cpp).
void judge_ranks_in_step(Judgement& j);

}  // namespace assay::verdict
