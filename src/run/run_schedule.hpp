// SPDX-License-Identifier: Apache-2.0
// Which case runs next, and for how long: a pure function of the plan, of what ended, of the time that passed
// and of losses. Uses no clock, file or communication.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <set>
#include <string>

#include "run/planner.hpp"

namespace assay {

class RunSchedule {
 public:
  /// At least this share of the budget is for closing the file.
  static constexpr double closing_share = 0.03;
  /// B/s of ended cases that are judged, and that are merged, by the processor of rank 0's supervisor:
  /// 100,000 ranks with 1.2 GB were judged twice and merged in 34 to 59 s.
  static constexpr double judging_rate = 80e6, merge_rate = 80e6;
  /// Required cases begin in the time of the level, or in this time from the first case on: a large or busy
  /// machine takes longer to start than a level of seconds lasts. In no case where the run's limit would end
  /// them.
  static constexpr double least_s = 30;
  /// By so much a case may outlast its expected time before that limit.
  static constexpr double overrun_s = 2;
  /// Another launch follows a loss only where this share of the budget is left.
  static constexpr double relaunch_share = 0.1;
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
  /// `plan` outlives this object. Cases that are appended to it later run at the end. `limit_s`: as below.
  explicit RunSchedule(const Plan& plan, double limit_s = std::numeric_limits<double>::infinity());

  /// After this time from the first case on, the run is ended, whatever runs. `earlier_s`: of the level's
  /// time, before this launch.
  static double limit_s(Level level, double budget_s, double earlier_s) noexcept;

  /// The next case, each once. An optional case for which the required ones may leave no time is postponed:
  /// expected times are upper bounds, and what they leave is known when the required cases have run.
  /// `stored`: paths of cases that an earlier launch has measured. `elapsed_s`: of the budget. After `end`,
  /// further calls return `end` until cases are appended.
  Decision next(const std::set<std::string>& stored, double elapsed_s);

  /// Bytes of the cases that have ended.
  void has_stored(std::uint64_t bytes) noexcept { stored_bytes_ = static_cast<double>(bytes); }

  /// They were judged in this time, which is the rate from now on.
  void was_judged(double seconds) noexcept;

  /// Ranks are lost: from now on only cases inside nodes and no retests. `restart_s`: what another launch,
  /// without the lost nodes, takes until its first case; nothing where none follows. It measures the nodes
  /// that are left completely, so where it has time for all that is required, no further case runs in this
  /// launch.
  void lose_ranks(double elapsed_s, std::optional<double> restart_s) noexcept;

  /// Whether to judge what is stored for retests: always once, so that what is not confirmed is told.
  bool time_to_judge(double elapsed_s) const noexcept;

  /// Time for retests; none after a loss.
  std::optional<double> retest_seconds(double elapsed_s) const noexcept;

 private:
  /// Across nodes nothing runs after a loss.
  bool can_run(const Case& c) const noexcept { return !lost_ || c.stage <= Stage::node_local; }
  /// Of the required cases that are to come and can run.
  void sum_required() noexcept;
  /// Whether it is too late to begin this required case.
  bool too_late(const Case& c, double elapsed_s) const noexcept;
  bool fits(const Case& c, double elapsed_s) const noexcept;
  double seconds_for(const Case& c, double elapsed_s) const noexcept;
  double judging_s(double bytes) const noexcept { return bytes / judged_rate_; }
  /// Until all is judged once more, for the file, and merged.
  double closing_s(double bytes) const noexcept;

  const Plan* plan_ = nullptr;
  double limit_s_ = std::numeric_limits<double>::infinity();
  std::size_t next_ = 0;
  std::deque<std::size_t> postponed_;
  double required_left_s_ = 0;      ///< expected of required cases after the one decided last
  double required_left_bytes_ = 0;  ///< that they will store
  double stored_bytes_ = 0;
  double judged_rate_ = judging_rate;
  bool judged_ = false;
  bool lost_ = false;
  std::optional<double> first_s_;  ///< of the budget, when the first case is asked for
  bool restarts_ = false;          ///< another launch measures the rest
};

}  // namespace assay
