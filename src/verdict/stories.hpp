// SPDX-License-Identifier: Apache-2.0
// Findings against one reference (a limit, a baseline, the history) that say one thing are one finding.
#pragma once

#include <cstddef>
#include <set>

#include "verdict/judgement.hpp"

namespace assay::verdict {

/// From the finding number `from` on: what several metrics of a suite say of one part, or with one severity
/// of groups of parts, is one finding, that of the metric that may be acted on first, else of the largest
/// deficit. Then slow parts that are all of a node's are one finding of the node, if they have the same
/// severity, and more than `list_members` that lost speed against their past are one of the cluster. Counts
/// are left as they are.
void join_stories(Judgement& j, std::size_t from);

/// Removes findings by their numbers.
void leave_out(Judgement& j, const std::set<std::size_t>& numbers);

}  // namespace assay::verdict
