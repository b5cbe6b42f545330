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
    return samples.size() >= min_samples_ && median_relative_ci(samples) <= target_;
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
  bool first_is_all = false;  ///< a single repetition took all the time there was: it is the sample
};

/// Runs single repetitions until the warm-up time is over.
WarmUp warm_up(const Operation& operation, const SamplingPlan& plan, double begin) {
  double shortest = std::numeric_limits<double>::infinity();
  // Ranks must run the same number of repetitions when the operation is collective, so they vote after each
  // one; the steps double because a vote can cost more than the operation.
  for (std::uint64_t step = 1;; step *= 2) {
    if (operation.sync) operation.sync();
    const double t0 = now_s();
    operation.run(step);
    if (plan.fault) plan.fault(t0, step, true);
    const double t1 = now_s();
    if (step == 1) {
      const bool all = t1 - t0 >= plan.max_seconds;
      if (operation.agree ? operation.agree(all) : all) return {t1 - t0, t0, t1 - t0, true};
    }
    shortest = std::min(shortest, (t1 - t0) / static_cast<double>(step));
    const bool enough =
        t1 - begin >= plan.warmup_seconds || t1 - begin + 2 * (t1 - t0) > plan.max_seconds / 2;
    if (operation.agree ? operation.agree(enough) : enough) return {shortest, 0, 0, false};
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
  series.seconds = {operation.timed_elsewhere ? operation.timed_elsewhere() : warm.first_s};
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
  for (std::size_t n = 0;;) {
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
    // The vote and the interval of the median are taken at every sample at first and then each tenth of the
    // series: both would otherwise dominate short operations. All ranks have the same n, so they vote at the
    // same samples.
    if (n > 10 && n < plan.max_samples && n % std::max<std::size_t>(1, n / 10) != 0) continue;
    const double elapsed = now_s() - begin;
    const bool stop = full->enough(series.seconds, elapsed) || late->enough(series.seconds, elapsed) ||
                      precise->enough(series.seconds, elapsed);
    if (operation.agree ? operation.agree(stop) : stop) break;
  }
  const std::size_t n = series.seconds.size();
  series.block.resize(n);
  const std::size_t blocks = std::max<std::size_t>(1, std::min(plan.blocks, n));
  for (std::size_t i = 0; i < n; ++i) series.block[i] = static_cast<std::int32_t>(i * blocks / n);
  return series;
}

}  // namespace assay
