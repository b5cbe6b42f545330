// SPDX-License-Identifier: Apache-2.0
// Many slow nodes among the random groups of a collective: a group is slow if one of its members is, so
// groups that are not slow clear all of theirs, and a slow group with one member that is not cleared accuses
// it. What lies open is said, too.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "verdict/collective_groups.hpp"
#include "verdict/judgement.hpp"

namespace assay::verdict {

/// What slow groups say of their members, which are nodes, or devices with groups of their own for each rail.
struct ManySlow {
  std::set<std::int32_t> named;  ///< all others of one of their slow groups were in groups that are not slow
  std::set<std::int32_t> open;   ///< in slow groups only, of which some have nobody that is named
  std::int32_t leaf = -1;        ///< the row of a switch: slow are the groups that cross it, and no others
  std::map<std::int32_t, double> best;           ///< by member: log rate of the best of its groups
  std::map<std::int32_t, std::int64_t> samples;  ///< by member
  double fast = 0, slow = 0;  ///< log rates: of the fast groups, and the median of the slow
  std::size_t groups = 0, slow_groups = 0;
  bool any() const { return !named.empty() || !open.empty() || leaf >= 0; }
};

/// `switch_of` a member: a row, -1 if unknown. Nodes below one switch may be faster together than any others,
/// so groups of such are no reference where there are others. Unless all have their own cores, the scheduler
/// makes gaps.
ManySlow many_slow(const std::vector<Draw>& draws, int rails, bool own_cores,
                   const std::function<std::int32_t(std::int32_t)>& switch_of);

/// The same of the groups of a series that have no node of `named`; with those of its retest, if `retest`.
ManySlow many_slow(const Judgement& j, const Series& s, const std::set<std::int32_t>& named, bool retest);

/// Tells the switch that explains all slow groups, and adds the nodes below it to `named`.
bool judge_slow_switch(Judgement& j, const Series& s, std::set<std::int32_t>& named);

/// Names what is named, adds it to `named` if the retest does not clear it, and tells that more is slow than
/// that, once if not cleared: `told`. What is cleared is a note once for each node and the cluster (-1):
/// `noted`.
void judge_many(Judgement& j, const Series& s, std::set<std::int32_t>& named, std::set<std::int32_t>& noted,
                bool& told);

}  // namespace assay::verdict
