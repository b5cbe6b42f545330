// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <optional>

#include "base/clock.hpp"
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
  Alone(const TrainWork& work, Context& context) : work_(work), context_(context), replica_(work, context) {
    replica_.gpt().save();
  }

  /// A series of this rank's turn, as one row.
  void measure(const SamplingPlan& plan) {
    if (!reference_) {
      replica_.gpt().restore();
      step();
      reference_ = digest();
    }
    for (auto& times : seconds_) times.clear();
    errors_.clear();
    Operation op;
    op.run = [this](std::uint64_t k) {
      for (std::uint64_t i = 0; i < k; ++i) step();
    };
    op.sync = [this] { replica_.gpt().restore(); };
    op.verify = [this](std::size_t sample) { check(sample); };
    add(sample(op, plan));
  }

 private:
  void step() {
    Gpt& gpt = replica_.gpt();
    const double t0 = now_s();
    replica_.load(0);
    const double data_s = now_s() - t0;
    gpt.ops().mark(0);
    replica_.forward();
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
    Gpt& gpt = replica_.gpt();
    return mix64(context_.device.digest(gpt.gradients(), gpt.table().size() * sizeof(float)),
                 gpt.parameter_digest());
  }

  void check(std::size_t sample) {
    Gpt& gpt = replica_.gpt();
    for (std::size_t s = 0; s < stages.size(); ++s) seconds_[s].push_back(last_[s]);
    context_.injection_point("gradient", gpt.gradients(), gpt.table().size(), sizeof(float));
    context_.injection_point("parameter", gpt.weights(), gpt.table().size(), gpt.element_bytes());
    const std::uint64_t seen = digest();
    errors_.push_back(seen == *reference_ ? 0 : 1);
    if (seen == *reference_) return;
    const double t = context_.since_start(now_s());
    replica_.gpt().restore();
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
    row.integers["digest"] = {*reference_};
    row.integers["threads"] = {static_cast<std::uint64_t>(context_.device.threads())};
    context_.record.add_time(series.warmup_s, series.timed_s, series.verify_s);
  }

  TrainWork work_;
  Context& context_;
  Replica replica_;
  std::optional<std::uint64_t> reference_;  ///< of a first, untimed step; ranks vote on it
  std::array<double, stages.size()> last_{};
  std::array<std::vector<double>, stages.size()> seconds_;
  std::vector<double> errors_;
};

}  // namespace

void run_alone(const Case& c, Context& context) {
  for (const results::MetricSpec& m : metrics().all())
    if (m.operation == "alone") context.record.declare(m);
  context.record.declare_integers("digest", {}, {});
  context.record.declare_integers("threads", {}, {});

  Together together(context.node);
  std::optional<Alone> alone;
  const double begin = now_s();
  together.guarded([&] { alone.emplace(work_from(c, context.device), context); });
  context.record.add_time(now_s() - begin, 0, 0);
  SamplingPlan plan = context.sampling(c.seconds);
  plan.repetitions = 1;
  context.take_turns(c.turns, [&] { together.guarded([&] { alone->measure(plan); }); });
  share_times(context.record, context.node);
  together.rethrow();
}

}  // namespace assay::train
