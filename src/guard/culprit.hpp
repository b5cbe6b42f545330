// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "guard/board.hpp"

namespace assay::guard {

/// A rank that did not arrive in time.
struct Suspect {
  int rank = -1;
  bool heard = true;  ///< its guardian still reports
  Snapshot at;
};

/// Who of those that did not arrive keeps the others waiting. In this order, the first that applies: ranks nobody hears
/// of; ranks whose process is stopped or dead; ranks that are behind in phase; ranks outside of any communicator call
/// (those inside wait for somebody); ranks that wait for one peer and not for a group; all of them.
std::vector<int> culprits(const std::vector<Suspect>& missing);

}  // namespace assay::guard
