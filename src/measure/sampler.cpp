// SPDX-License-Identifier: Apache-2.0
#include "measure/sampler.hpp"

#include <algorithm>
#include <cmath>

#include "base/clock.hpp"
#include "measure/statistics.hpp"

namespace assay {
namespace {

class RelativeCi final : public StoppingCriterion {
 public:
  RelativeCi(double target, std::size_t min_samples) : target_(target), min_samples_(min_samples) {}
  bool enough(const std::vector<double>& samples, double) const override {
    // Samples that are not finite have no interval, however many are taken: more of them are of no use.
    constexpr std::size_t least = 3;  // of which there is one
    if (samples.size() < min_samples_) return false;
    const double interval = median_relative_ci(samples);
    return interval <= target_ || (!std::isfinite(interval) && target_ > 0 && samples.size() >= least);
  }
  std::string name() const override { return "relative-ci"; }

 private:
  double target_;
  std::size_t min_samples_;
};

class Count final : public StoppingCriterion {
 public:
  explicit Count(std::size_t count) : count_(count) {}
  bool enough(const std::vector<double>& samples, double) const override { return samples.size() >= count_; }
  std::string name() const override { return "count"; }

 private:
  std::size_t count_;
};

class Time final : public StoppingCriterion {
 public:
  explicit Time(double seconds) : seconds_(seconds) {}
  bool enough(const std::vector<double>&, double elapsed_s) const override { return elapsed_s >= seconds_; }
  std::string name() const override { return "time"; }

 private:
  double seconds_;
};

struct WarmUp {
  double shortest_s = 0;  ///< of a repetition
  double start_s = 0, first_s = 0;
  double longer = 1.0;        ///< by which injected faults lengthen the first
  bool first_is_all = false;  ///< a single repetition took all the time there was: it is the sample
};

/// True if it is on any rank.
bool any(const Operation& operation, bool mine) {
  const SampleVote vote{mine ? 1.0 : 0.0, 0, 0};
  return (operation.agree ? operation.agree(vote) : vote).stop > 0;
}

/// Runs single repetitions until the warm-up time is over.
WarmUp warm_up(const Operation& operation, const SamplingPlan& plan, double begin) {
  double shortest = std::numeric_limits<double>::infinity();
  // Ranks must run the same number of repetitions when the operation is collective, so they vote after each
  // one; the steps double because a vote can cost more than the operation.
  for (std::uint64_t step = 1;; step *= 2) {
    if (operation.sync) operation.sync();
    const double t0 = now_s();
    operation.run(step);
    const double longer = plan.fault ? plan.fault(t0, step, true) : 1.0;
    const double t1 = now_s();
    if (step == 1) {
      const bool all = t1 - t0 >= plan.max_seconds;
      if (any(operation, all)) return {t1 - t0, t0, t1 - t0, longer, true};
    }
    shortest = std::min(shortest, (t1 - t0) / static_cast<double>(step));
    const bool enough =
        t1 - begin >= plan.warmup_seconds || t1 - begin + 2 * (t1 - t0) > plan.max_seconds / 2;
    if (any(operation, enough)) return {shortest, 0, 0, 1.0, false};
  }
}

std::uint64_t batch_size(const Operation& operation, const SamplingPlan& plan, double single_s) {
  std::uint64_t k = plan.repetitions;
  if (k == 0) {
    const double wanted = 100.0 * clock_step_s();
    k = single_s >= wanted ? 1 : static_cast<std::uint64_t>(std::ceil(wanted / std::max(single_s, 1e-9)));
  }
  return operation.agree_k ? operation.agree_k(k) : k;
}

/// Of something so slow that a repetition takes all of its time.
SampleSeries one_sample(const Operation& operation, const SamplingPlan& plan, const WarmUp& warm) {
  SampleSeries series;
  series.start_s = {warm.start_s};
  series.seconds = {operation.timed_elsewhere ? operation.timed_elsewhere() * warm.longer : warm.first_s};
  series.block = {0};
  series.timed_s = warm.first_s;
  if (plan.batches != nullptr) plan.batches->fetch_add(1, std::memory_order_relaxed);
  if (!operation.verify) return series;
  const double begin = now_s();
  operation.verify(0);
  series.verify_s = now_s() - begin;
  return series;
}

}  // namespace

std::unique_ptr<StoppingCriterion> stop_by_relative_ci(double target, std::size_t min_samples) {
  return std::make_unique<RelativeCi>(target, min_samples);
}
std::unique_ptr<StoppingCriterion> stop_by_count(std::size_t count) { return std::make_unique<Count>(count); }
std::unique_ptr<StoppingCriterion> stop_by_time(double seconds) { return std::make_unique<Time>(seconds); }

SampleSeries sample(const Operation& operation, const SamplingPlan& plan) {
  SampleSeries series;
  const double begin = now_s();
  const WarmUp warm = warm_up(operation, plan, begin);
  if (warm.first_is_all) return one_sample(operation, plan, warm);
  series.repetitions = batch_size(operation, plan, warm.shortest_s);
  series.warmup_s = now_s() - begin;

  const auto precise = stop_by_relative_ci(plan.relative_ci, plan.min_samples);
  const auto full = stop_by_count(plan.max_samples);
  const auto late = stop_by_time(plan.max_seconds);
  for (std::size_t n = 0, due = 0;;) {
    const double sample_begin = now_s();
    if (operation.sync) operation.sync();
    const double t0 = now_s();
    operation.run(series.repetitions);
    const double longer = plan.fault ? plan.fault(t0, series.repetitions, false) : 1.0;
    const double wall = now_s() - t0;
    series.start_s.push_back(t0);
    series.seconds.push_back(operation.timed_elsewhere ? operation.timed_elsewhere() * longer : wall);
    series.timed_s += wall;
    if (plan.batches != nullptr) plan.batches->fetch_add(1, std::memory_order_relaxed);
    if (operation.verify) {
      const double v0 = now_s();
      operation.verify(n);
      series.verify_s += now_s() - v0;
    }
    ++n;
    const double now = now_s(), elapsed = now - begin, left_s = plan.max_seconds - elapsed;
    const bool stop = full->enough(series.seconds, elapsed) || late->enough(series.seconds, elapsed);
    // The vote and the interval of the median are taken at every sample at first and then each tenth of the
    // series: both would otherwise dominate short operations. All ranks have the same n and the same `due`,
    // so they vote at the same samples.
    const bool vote_due = n <= 10 || n >= plan.max_samples || n % (n / 10) == 0;
    if (!vote_due && (operation.agree ? n < due : !stop)) continue;
    SampleVote vote{stop ? 1.0 : 0.0, precise->enough(series.seconds, elapsed) ? 0.0 : 1.0,
                    left_s > 0 ? (now - sample_begin) / left_s : 1.0};
    if (operation.agree) vote = operation.agree(vote);
    if (vote.stop > 0 || vote.imprecise == 0) break;
    // The next vote is no later than when samples like the last one have used up the time that is left.
    due = n + static_cast<std::size_t>(std::clamp(1 / std::max(vote.share, 1e-9), 1.0, 1e9));
  }
  const std::size_t n = series.seconds.size();
  series.block.resize(n);
  const std::size_t blocks = std::max<std::size_t>(1, std::min(plan.blocks, n));
  for (std::size_t i = 0; i < n; ++i) series.block[i] = static_cast<std::int32_t>(i * blocks / n);
  return series;
}

}  // namespace assay
