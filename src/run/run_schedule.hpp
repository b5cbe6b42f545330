// SPDX-License-Identifier: Apache-2.0
// Which case runs next, and for how long: a pure function of the plan, of what ended, of the time that passed
// and of losses. Uses no clock, file or communication.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <set>
#include <string>

#include "run/planner.hpp"

namespace assay {

class RunSchedule {
 public:
  /// The rest of the budget is for closing the file.
  static constexpr double usable_share = 0.97;
  /// Share of the budget reserved for retests.
  static constexpr double retest_share = 0.12;

  enum class Action { run, skip, end };
  struct Decision {
    Action action = Action::end;
    std::size_t index = 0;  ///< of the case in the plan
    double seconds = 0;     ///< run: time after which the case is ended in order
    std::string reason;     ///< skip
  };

  RunSchedule() = default;
  /// `plan` outlives this object. Cases that are appended to it later run at the end.
  explicit RunSchedule(const Plan& plan) : plan_(&plan), required_left_s_(plan.required_s()) {}

  /// The next case, each once. An optional case for which the required ones may leave no time is postponed:
  /// expected times are upper bounds, and what they leave is known when the required cases have run.
  /// `stored`: paths of cases that an earlier launch has measured. `elapsed_s`: of the budget. After `end`,
  /// further calls return `end` until cases are appended.
  Decision next(const std::set<std::string>& stored, double elapsed_s);

  /// Ranks are lost: from now on only cases inside nodes and no retests.
  void lose_ranks() noexcept { lost_ = true; }

  /// Time for retests; none after a loss.
  std::optional<double> retest_seconds(double elapsed_s) const noexcept;

 private:
  bool fits(const Case& c, double elapsed_s) const noexcept;
  double seconds_for(const Case& c, double elapsed_s) const noexcept;

  const Plan* plan_ = nullptr;
  std::size_t next_ = 0;
  std::deque<std::size_t> postponed_;
  double required_left_s_ = 0;  ///< expected of required cases after the one decided last
  bool lost_ = false;
};

}  // namespace assay
