// SPDX-License-Identifier: Apache-2.0
// For how long a launcher runs, and whether the run that it started must be over.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <string>

#include "base/clock.hpp"
#include "run/launcher.hpp"

namespace assay {

/// How long ago one launch began to run, and wrote its results file.
class LaunchClock {
 public:
  /// `at_once`: a launcher of this machine, which has no queue.
  explicit LaunchClock(bool at_once) { since(begun_s_, at_once); }
  /// For how long the launcher has outlived its run; empty while it is not overdue. `bytes`: what it wrote.
  std::string overdue(bool written, bool begun, double budget_s,
                      const std::function<std::uint64_t()>& bytes) {
    const double run_s = since(begun_s_, begun || written), closed_s = since(written_s_, written);
    if (!launcher_overdue(run_s, closed_s, budget_s, 0)) return "";
    if (!launcher_overdue(run_s, closed_s, budget_s, bytes())) return "";
    return closed_s < 0 ? fmt::format("{:.0f} s after the run began", run_s)
                        : fmt::format("{:.0f} s after the results file was closed", closed_s);
  }
  double begun_s() const { return begun_s_; }  ///< by now_s(); -1: it was not seen to begin
  double age_s() const { return now_s() - made_s_; }

 private:
  static double since(double& first_s, bool seen) {
    if (first_s < 0 && seen) first_s = now_s();
    return first_s < 0 ? -1 : now_s() - first_s;
  }
  double made_s_ = now_s(), begun_s_ = -1, written_s_ = -1;
};

}  // namespace assay
