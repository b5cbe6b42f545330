// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/clock.hpp"
#include "measure/sizing.hpp"
#include "suite/together.hpp"
#include "suites/train/train_metrics.hpp"
#include "suites/train/train_work.hpp"

namespace assay::train {
namespace {

constexpr std::array<const char*, 4> stages = {"data", "forward", "backward", "optimizer"};

/// The first step of training again and again, from the same state on the same data, without communication:
/// every repetition must give the same bits, on every rank.
class Alone {
 public:
  /// A rank of which a step takes much longer than `step_s` makes steps of fewer sequences.
  Alone(const TrainWork& work, double step_s, Context& context)
      : work_(work), planned_batch_(work.preset.batch), step_s_(step_s), context_(context) {
    make();
  }

  /// A series of this rank's turn, as one row.
  void measure(const SamplingPlan& plan) {
    if (!reference_) {
      fit();
      reference_ = digest();
    }
    for (auto& times : seconds_) times.clear();
    errors_.clear();
    Operation op;
    op.run = [this](std::uint64_t k) {
      for (std::uint64_t i = 0; i < k; ++i) step();
    };
    op.sync = [this] { restore(); };
    op.verify = [this](std::size_t sample) { check(sample); };
    add(sample(op, plan));
  }

 private:
  void make() {
    replica_.emplace(work_, context_);
    replica_->gpt().save();
  }

  /// Complete before the clock starts: the copies are not part of a step.
  void restore() {
    replica_->gpt().restore();
    context_.device.synchronize();
  }

  /// The step that a profiler sees.
  double timed_step_s() {
    restore();
    const double begin = now_s();
    context_.device.profile(true);
    step();
    context_.device.profile(false);
    context_.apply_injected_delay(begin, 1, true);
    context_.count_batch();
    return now_s() - begin;
  }

  /// Ends with a step.
  void fit() {
    double met_s = timed_step_s();
    // The first one starts the library's threads.
    if (met_s > size_patience * step_s_) met_s = std::min(met_s, timed_step_s());
    if (met_s <= size_patience * step_s_) return;
    const double sequence_s = met_s / static_cast<double>(planned_batch_);
    work_.preset.batch = fitted_count(planned_batch_, sequence_s, step_s_);
    context_.record.event("train-cut-short",
                          fmt::format("steps of {} instead of {} sequences: one sequence takes {:.3g} s",
                                      work_.preset.batch, planned_batch_, sequence_s),
                          context_.device_entity);
    make();
    step();
  }

  void step() {
    Gpt& gpt = replica_->gpt();
    const double t0 = now_s();
    replica_->load(0);
    const double data_s = now_s() - t0;
    gpt.ops().mark(0);
    replica_->forward();
    gpt.ops().mark(1);
    gpt.backward(nullptr, nullptr);
    gpt.ops().mark(2);
    gpt.update(work_.preset.rule(0, 1));
    gpt.ops().mark(3);
    context_.device.synchronize();
    last_ = {data_s, gpt.ops().elapsed_s(0, 1), gpt.ops().elapsed_s(1, 2), gpt.ops().elapsed_s(2, 3)};
  }

  /// Of everything the step made.
  std::uint64_t digest() {
    Gpt& gpt = replica_->gpt();
    return mix64(context_.device.digest(gpt.gradients(), gpt.table().size() * sizeof(float)),
                 gpt.parameter_digest());
  }

  void check(std::size_t sample) {
    Gpt& gpt = replica_->gpt();
    for (std::size_t s = 0; s < stages.size(); ++s) seconds_[s].push_back(last_[s]);
    context_.injection_point("gradient", gpt.gradients(), gpt.table().size(), sizeof(float));
    context_.injection_point("parameter", gpt.weights(), gpt.table().size(), gpt.element_bytes());
    const std::uint64_t seen = digest();
    errors_.push_back(seen == *reference_ ? 0 : 1);
    if (seen == *reference_) return;
    const double t = context_.since_start(now_s());
    replica_->gpt().restore();
    step();
    context_.record.miscompare({"", context_.device_entity, sample, *reference_, seen, digest(), t});
  }

  void add(const SampleSeries& series) {
    auto& row = context_.record.add_row(context_.device_entity);
    for (std::size_t i = 0; i < series.seconds.size(); ++i) {
      row.t.push_back(context_.since_start(series.start_s[i]));
      row.values["throughput"].push_back(static_cast<double>(work_.preset.tokens()) / series.seconds[i]);
    }
    row.block = series.block;
    for (std::size_t s = 0; s < stages.size(); ++s) row.values[stages[s]] = seconds_[s];
    row.values["errors"] = errors_;
    const bool whole = work_.preset.batch == planned_batch_;
    row.integers["digest"] = {whole ? *reference_ : results::no_digest};
    row.integers["sequences"] = {work_.preset.batch};
    context_.tell_arithmetic(row);
    context_.record.add_time(series.warmup_s, series.timed_s, series.verify_s);
  }

  TrainWork work_;
  std::size_t planned_batch_;
  double step_s_;  ///< planned
  Context& context_;
  std::optional<Replica> replica_;
  std::optional<std::uint64_t> reference_;  ///< of a first, untimed step; ranks vote on it
  std::array<double, stages.size()> last_{};
  std::array<std::vector<double>, stages.size()> seconds_;
  std::vector<double> errors_;
};

}  // namespace

void run_alone(const Case& c, Context& context) {
  for (const results::MetricSpec& m : metrics().all())
    if (m.operation == "alone") context.record.declare(m);
  for (const char* name : {"digest", "sequences"}) context.record.declare_integers(name, {}, {});
  context.declare_arithmetic();

  Together together(context.node);
  std::optional<Alone> alone;
  const double begin = now_s();
  together.guarded([&] { alone.emplace(work_from(c, context.device), c.min_seconds / 7, context); });
  context.record.add_time(now_s() - begin, 0, 0);
  SamplingPlan plan = context.sampling(c.seconds);
  plan.repetitions = 1;
  context.take_turns(c.turns, [&] { together.guarded([&] { alone->measure(plan); }); });
  share_times(context.record, context.node);
  together.rethrow();
}

}  // namespace assay::train
