// SPDX-License-Identifier: Apache-2.0
// Attribution of a hang: a pure function of the wait-for relation of the ranks and their last progress.
#pragma once

#include <utility>
#include <vector>

#include "supervisor/heartbeat.hpp"

namespace assay::supervisor {

/// A rank that did not arrive in time.
struct MissingRank {
  int rank = -1;
  bool heard = true;  ///< its supervisor still reports
  Snapshot at;
};

struct HangAttribution {
  std::vector<int> at_fault;  ///< by own evidence
  /// Exchanges that do not end between ranks without evidence against either: a link, or one of its ends.
  std::vector<std::pair<int, int>> links;
};

/// A waiting rank is not at fault. At fault are, by the first of these that applies to any rank: ranks
/// without reports; ranks with a stopped or dead process; ranks behind in phase; ranks outside any
/// communicator call without progress for `stuck_s` (ranks inside a call wait). If all wait, the wait-for
/// chains are followed: a chain that ends in a cycle, or at a rank that has continued, names the link there
/// and no rank. A group whose ranks all wait in its operation names nothing.
HangAttribution attribute_hang(const std::vector<MissingRank>& missing, double stuck_s);

/// Whether its process is stopped or dead.
bool stopped(const MissingRank& rank) noexcept;

/// Whether all of them wait or are stopped, so that there will be no progress.
bool all_wait(const std::vector<MissingRank>& missing) noexcept;

}  // namespace assay::supervisor
