// SPDX-License-Identifier: Apache-2.0
// What of the level's time has passed, from the start of the launcher on.
#pragma once

#include <cstddef>

namespace assay {

/// Ranks of this launch, 1 without a launcher.
std::size_t launched_ranks();

class RunClock {
 public:
  RunClock();
  /// All ranks are ready for the first case of a segment. `spent_s`: of launches before this one.
  void begin(int segment, double spent_s);
  bool has_begun() const noexcept { return from_s_ > 0; }
  double elapsed_s() const;                             ///< of the budget
  double start_s() const noexcept { return start_s_; }  ///< from the launcher's start to the first case

 private:
  double launched_at_s_, from_s_ = 0, start_s_ = 0;
};

}  // namespace assay
