// SPDX-License-Identifier: Apache-2.0
// Who keeps the others waiting: a pure function of who waits for whom, where and since when.
#pragma once

#include <utility>
#include <vector>

#include "guard/heartbeat.hpp"

namespace assay::guard {

/// A rank that did not arrive in time.
struct MissingRank {
  int rank = -1;
  bool heard = true;  ///< its guardian still reports
  Snapshot at;
};

struct Blame {
  std::vector<int> accused;  ///< by evidence of their own
  /// Exchanges that do not end, between ranks of which neither is to blame by what is known: a link, or
  /// either of its ends.
  std::vector<std::pair<int, int>> links;
};

/// Whoever waits is not to blame. Accused are, by the first of these that applies to any: ranks nobody hears
/// of; ranks whose process is stopped or dead; ranks that are behind in phase; ranks outside of any
/// communicator call that have not moved for `stuck_s` (those inside wait for somebody). Where all wait, the
/// chains of who waits for whom are followed: those that end in a circle, or at a rank that has gone on, name
/// the links there and accuse nobody. A group whose ranks all wait in its operation names nothing.
Blame blame(const std::vector<MissingRank>& missing, double stuck_s);

/// Whether all of them wait for somebody or are stopped, so that nothing will come of waiting longer.
bool all_wait(const std::vector<MissingRank>& missing) noexcept;

}  // namespace assay::guard
