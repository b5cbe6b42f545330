// SPDX-License-Identifier: Apache-2.0
#include "run/run_schedule.hpp"

#include <algorithm>

namespace assay {

RunSchedule::Decision RunSchedule::next(const std::set<std::string>& stored, double elapsed_s) {
  while (plan_ != nullptr && next_ < plan_->cases.size()) {
    const Case& c = plan_->cases[next_];
    const bool done = stored.contains(c.path());
    if (c.not_applicable.empty() && !done && lost_ && c.stage > Stage::node_local) break;
    const std::size_t index = next_++;
    if (!c.not_applicable.empty()) continue;
    if (c.required) required_left_s_ -= c.expected_s();
    if (done) continue;
    if (fits(c, elapsed_s)) return {Action::run, index, seconds_for(c, elapsed_s), {}};
    postponed_.push_back(index);
  }
  while (!postponed_.empty()) {
    const std::size_t index = postponed_.front();
    postponed_.pop_front();
    const Case& c = plan_->cases[index];
    if (lost_ && c.stage > Stage::node_local) continue;
    if (!fits(c, elapsed_s)) return {Action::skip, index, 0, "budget"};
    return {Action::run, index, seconds_for(c, elapsed_s), {}};
  }
  return {};
}

std::optional<double> RunSchedule::retest_seconds(double elapsed_s) const noexcept {
  if (lost_ || plan_ == nullptr) return {};
  return plan_->budget_s * usable_share - elapsed_s;
}

bool RunSchedule::fits(const Case& c, double elapsed_s) const noexcept {
  if (c.required || c.retest) return true;  // retests were chosen to fit
  return elapsed_s + c.expected_s() + required_left_s_ <= plan_->budget_s * (usable_share - retest_share);
}

/// What was planned, and a quarter of what the budget has left beside all else that is required.
double RunSchedule::seconds_for(const Case& c, double elapsed_s) const noexcept {
  const double expected = c.expected_s();
  const double left = plan_->budget_s - elapsed_s - required_left_s_;
  return 1.1 * expected + 0.3 + 0.25 * std::max(0.0, left - expected);
}

}  // namespace assay
