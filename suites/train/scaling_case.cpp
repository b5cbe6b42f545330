// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/clock.hpp"
#include "measure/sizing.hpp"
#include "measure/statistics.hpp"
#include "suites/train/train_metrics.hpp"
#include "suites/train/train_work.hpp"

namespace assay::train {
namespace {

/// The same pass (forward and backward, no update) in four ways: alone on the node; all ranks at once without
/// communication; communication alone; both, overlapped as in training.
class Scaling {
 public:
  Scaling(const Case& c, Context& context)
      : case_(c),
        context_(context),
        work_(fitted(work_from(c, context.device), c.seconds / 16, context)),
        replica_(work_, context),
        reducer_(replicas_of(context), replica_.gpt(), progress_of(context)) {
    replica_.load(static_cast<std::uint64_t>(context.world.rank()) * work_.preset.batch);
  }

  void run() {
    declare();
    const double begin = now_s();
    const int turns = case_.parameters.value("turns", 8);
    const double pass_s = pass(false);  // warm-up
    fit((turns + 2) * pass_s + communicate());
    const double warm = now_s();
    std::vector<double> alone, compute, communication, together, starts, hidden;
    context_.take_turns(turns, [&] {
      for (int i = 0; i < steps_; ++i) alone.push_back(pass(false));
    });
    for (int i = 0; i < steps_; ++i) {
      context_.world.barrier();
      starts.push_back(context_.since_start(now_s()));
      compute.push_back(pass(false));
      context_.world.barrier();
      communication.push_back(communicate());
      context_.world.barrier();
      together.push_back(pass(true));
      hidden.push_back(std::clamp(1 - exposed_s_ / communication.back(), 0.0, 1.0));
    }
    report(starts, alone, compute, communication, together, hidden);
    context_.record.add_time(warm - begin, now_s() - warm, 0);
  }

 private:
  void declare() {
    for (const results::MetricSpec& m : metrics().all())
      if (m.operation == "scaling") context_.record.declare(m);
  }

  /// All ranks repeat as often as the slowest gets through in its share of the time. `round_s`: of what is
  /// repeated, on this rank.
  void fit(double round_s) {
    const double share_s = size_patience * case_.seconds;
    steps_ = static_cast<int>(
        fitted_count(static_cast<std::size_t>(work_.steps), context_.world.max(round_s), share_s));
    context_.record.parameter("repetitions", steps_);
  }

  double pass(bool reduce) {
    const double begin = now_s();
    TrainOps& ops = replica_.gpt().ops();
    replica_.forward();
    if (reduce)
      replica_.gpt().backward([&](std::size_t b) { reducer_.ready(b); }, [&] { reducer_.tick(); });
    else
      replica_.gpt().backward(nullptr, nullptr);
    end_region(context_, begin);
    ops.mark(0);
    if (reduce) reducer_.wait();
    ops.mark(1);
    reducer_.finish();
    context_.device.synchronize();
    context_.count_batch();
    exposed_s_ = reduce ? ops.elapsed_s(0, 1) : 0;
    return now_s() - begin;
  }

  double communicate() {
    const double begin = now_s();
    for (std::size_t b = 0; b < replica_.gpt().table().buckets().size(); ++b) reducer_.ready(b);
    reducer_.wait();
    reducer_.finish();
    context_.device.synchronize();
    return now_s() - begin;
  }

  void report(const std::vector<double>& starts, const std::vector<double>& alone,
              const std::vector<double>& compute, const std::vector<double>& communication,
              const std::vector<double>& together, const std::vector<double>& hidden) {
    auto& row = context_.record.add_row(context_.device_entity);
    row.t = starts;
    row.block.assign(starts.size(), 0);
    const bool several = context_.world.size() > 1;
    if (!alone.empty()) row.values["alone"] = alone;
    row.values["compute"] = compute;
    row.values["together"] = together;
    const double t_compute = median(compute), t_both = median(together);
    if (!alone.empty()) {
      row.values["contention"] = {median(alone) / t_compute};
      row.values["weak_scaling"] = {median(alone) / t_both};
    }
    if (!several) return;
    row.values["communication"] = communication;
    row.values["hidden"] = hidden;
    const double t_comm = median(communication), least = std::min(t_compute, t_comm);
    row.values["overlap_gain"] = {(t_compute + t_comm - t_both) / least};
    context_.record.parameter("progress", reducer_.progress());
  }

  const Case& case_;
  Context& context_;
  TrainWork work_;
  Replica replica_;
  GradientReducer reducer_;
  int steps_ = 1;  ///< of each way
  double exposed_s_ = 0;
};

}  // namespace

void run_scaling(const Case& c, Context& context) { Scaling(c, context).run(); }

}  // namespace assay::train
