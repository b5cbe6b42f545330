// SPDX-License-Identifier: Apache-2.0
// What happened in a step, on one rank and on all.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "suite/suite.hpp"

namespace assay::train {

/// What every rank tells the others after a step. Seconds, nat.
struct StepReport {
  double data_s = 0, forward_s = 0, backward_s = 0, exposed_s = 0, optimizer_s = 0;
  double communication_s = 0;                ///< in which something was in transfer; 0: not known
  double loss = 0, oracle = 0, counted = 0;  ///< sums over this rank's targets, and their number
  double squares = 0;                        ///< of the reduced gradient
  double stop = 0;                           ///< this rank has no time left
  std::uint64_t digest = 0;                  ///< of the parameters after the update

  double step_s() const noexcept { return data_s + forward_s + backward_s + exposed_s + optimizer_s; }
  double compute_s() const noexcept { return data_s + forward_s + backward_s + optimizer_s; }
  /// Share of the communication that compute hid; NaN where there was none.
  double overlap() const noexcept {
    return communication_s > 0 ? std::clamp(1 - exposed_s / communication_s, 0.0, 1.0) : results::not_taken;
  }
  /// After a pass whose buckets were in transfer for `reduced_s`, of which `waited_s` after the backward
  /// pass, and whose new weights took `shared_s` to reach all ranks. No transfer hides the latter.
  void add_communication(double reduced_s, double waited_s, double shared_s) noexcept {
    exposed_s += waited_s + shared_s;
    if (reduced_s > 0) communication_s += reduced_s + shared_s;
  }
};
static_assert(std::is_trivially_copyable_v<StepReport>);

/// Collective: the reports of all ranks.
std::vector<StepReport> exchange(Communicator& comm, const StepReport& mine);

/// Regret over all ranks, nat per token: their losses less what a perfect model would have lost on the same
/// tokens.
double regret_of(const std::vector<StepReport>& reports) noexcept;

/// The samples of one rank, step by step.
class StepLog {
 public:
  /// Metrics of all training cases.
  static void declare(CaseRecord& record);

  /// `start_s` on this rank's clock.
  void add(const StepReport& mine, double start_s, double regret, double errors);
  int steps() const noexcept { return static_cast<int>(t_.size()); }
  /// Of the steps so far, in seconds.
  std::vector<double> compute_s() const;
  /// Mean regret of the last `window` steps.
  double recent_regret(int window) const noexcept;
  /// Adds the row of this rank. `tokens` per step and rank.
  CaseRecord::Row& write(Context& context, double tokens) const;

 private:
  std::vector<StepReport> reports_;
  std::vector<double> t_, regret_, errors_;
};

}  // namespace assay::train
