// SPDX-License-Identifier: Apache-2.0
// For how long a launcher runs, and whether the run that it started must be over.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "run/launcher.hpp"

namespace assay {

/// For how long a time that another host renews has stood still, while this process looked: clocks of two
/// hosts may differ, and this process may have waited for the file server itself.
class SignOfLife {
 public:
  using Time = std::optional<std::filesystem::file_time_type>;
  /// `shown`: nothing where there is none, which says nothing.
  double still_s(const Time& shown, double now) {
    constexpr double most_between_s = 2;
    const double since_s = std::min(now - std::exchange(looked_s_, now), most_between_s);
    const bool same = shown && shown == std::exchange(shown_, shown);
    return still_s_ = same ? still_s_ + since_s : 0;
  }

 private:
  Time shown_;
  double looked_s_ = 0, still_s_ = 0;
};

/// How long ago one launch began to run, and wrote its results file.
class LaunchClock {
 public:
  /// `at_once`: a launcher of this machine, which has no queue.
  explicit LaunchClock(bool at_once) : local_(at_once) { since(begun_s_, at_once); }
  /// For how long the launcher has outlived its run; empty while it is not overdue. `shown`: the last
  /// sign of life of the run. `bytes`: what it wrote; nothing where that is unknown.
  std::string overdue(bool written, bool begun, const SignOfLife::Time& shown, double budget_s,
                      const std::function<std::optional<std::uint64_t>()>& bytes) {
    const double run_s = since(begun_s_, begun || written), closed_s = since(written_s_, written);
    // Before, what is there may be another run's. On this machine the launcher ends with rank 0.
    const double still_s = life_.still_s(begun && !written && !local_ ? shown : std::nullopt, now_s());
    if (writer_silent(still_s, 0) && writer_silent(still_s, bytes()))
      return fmt::format("{:.0f} s after the last sign of life of rank 0", still_s);
    if (!launcher_overdue(run_s, closed_s, budget_s, 0)) return "";
    if (!launcher_overdue(run_s, closed_s, budget_s, bytes().value_or(0))) return "";
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
  bool local_;
  SignOfLife life_;
};

}  // namespace assay
