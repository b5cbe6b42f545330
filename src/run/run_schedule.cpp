// SPDX-License-Identifier: Apache-2.0
#include "run/run_schedule.hpp"

#include <algorithm>

namespace assay {

RunSchedule::RunSchedule(const Plan& plan, double limit_s) : plan_(&plan), limit_s_(limit_s) {
  sum_required();
}

double RunSchedule::limit_s(Level level, double budget_s, double earlier_s) noexcept {
  constexpr double last_case_s = 15;
  const double whole_s = budget_s * (level == Level::smoke ? 1.0 : 1.1) + 5;
  return std::max(whole_s - earlier_s, std::min(whole_s, least_s + last_case_s));
}

RunSchedule::Decision RunSchedule::next(const std::set<std::string>& stored, double elapsed_s) {
  if (restarts_) return {};
  if (!first_s_) first_s_ = elapsed_s;
  while (plan_ != nullptr && next_ < plan_->cases.size()) {
    const Case& c = plan_->cases[next_];
    const bool done = stored.contains(c.path());
    if (c.not_applicable.empty() && !done && !can_run(c)) break;
    const std::size_t index = next_++;
    if (!c.not_applicable.empty()) continue;
    if (c.required && can_run(c))
      required_left_s_ -= c.expected_s(), required_left_bytes_ -= plan_->case_file_bytes(c);
    if (done) continue;
    if (c.required && !c.retest && too_late(c, elapsed_s)) return {Action::skip, index, 0, "budget"};
    if (fits(c, elapsed_s)) return {Action::run, index, seconds_for(c, elapsed_s), {}};
    postponed_.push_back(index);
  }
  while (!postponed_.empty()) {
    const std::size_t index = postponed_.front();
    postponed_.pop_front();
    const Case& c = plan_->cases[index];
    if (!can_run(c)) continue;
    if (!fits(c, elapsed_s)) return {Action::skip, index, 0, "budget"};
    return {Action::run, index, seconds_for(c, elapsed_s), {}};
  }
  return {};
}

void RunSchedule::lose_ranks(double elapsed_s, std::optional<double> restart_s) noexcept {
  lost_ = true;
  if (plan_ == nullptr) return;
  const bool amid_required = next_ > 0 && plan_->cases[next_ - 1].required;
  const double left_s = required_left_s_ + (amid_required ? plan_->cases[next_ - 1].expected_s() : 0);
  const double bytes = stored_bytes_ + required_left_bytes_;
  const double end_s = elapsed_s + closing_s(bytes);
  restarts_ = restarts_ || (restart_s && end_s + *restart_s + left_s <= plan_->budget_s &&
                            end_s <= plan_->budget_s * (1 - relaunch_share));
  sum_required();
}

void RunSchedule::sum_required() noexcept {
  required_left_s_ = required_left_bytes_ = 0;
  for (std::size_t i = next_; i < plan_->cases.size(); ++i) {
    const Case& c = plan_->cases[i];
    if (!c.required || !c.not_applicable.empty() || !can_run(c)) continue;
    required_left_s_ += c.expected_s();
    required_left_bytes_ += plan_->case_file_bytes(c);
  }
}

std::optional<double> RunSchedule::retest_seconds(double elapsed_s) const noexcept {
  if (lost_ || plan_ == nullptr) return {};
  return plan_->budget_s - closing_s(stored_bytes_) - elapsed_s;
}

bool RunSchedule::time_to_judge(double elapsed_s) const noexcept {
  const auto left_s = retest_seconds(elapsed_s);
  return left_s && (!judged_ || *left_s > judging_s(stored_bytes_));
}

void RunSchedule::was_judged(double seconds) noexcept {
  judged_ = true;
  if (seconds > 0 && stored_bytes_ > 0) judged_rate_ = stored_bytes_ / seconds;
}

double RunSchedule::closing_s(double bytes) const noexcept {
  return std::max(plan_->budget_s * closing_share, judging_s(bytes) + bytes / merge_rate);
}

bool RunSchedule::too_late(const Case& c, double elapsed_s) const noexcept {
  if (elapsed_s >= std::max(plan_->budget_s, *first_s_ + least_s)) return true;
  const double end_s = elapsed_s + c.expected_s();
  return end_s > plan_->budget_s && end_s + overrun_s > *first_s_ + limit_s_;
}

bool RunSchedule::fits(const Case& c, double elapsed_s) const noexcept {
  if (c.required || c.retest) return true;  // retests were chosen to fit
  const double bytes = stored_bytes_ + required_left_bytes_ + plan_->case_file_bytes(c);
  return elapsed_s + c.expected_s() + required_left_s_ + 2 * judging_s(bytes) + closing_s(bytes) <=
         plan_->budget_s * (1 - retest_share);
}

/// What was planned, and a quarter of what the budget has left beside all else that is required.
double RunSchedule::seconds_for(const Case& c, double elapsed_s) const noexcept {
  const double expected = c.expected_s();
  const double bytes = stored_bytes_ + required_left_bytes_ + plan_->case_file_bytes(c);
  const double left = plan_->budget_s - closing_s(bytes) - elapsed_s - required_left_s_;
  return 1.1 * expected + 0.3 + 0.25 * std::max(0.0, left - expected);
}

}  // namespace assay
