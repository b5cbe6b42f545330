// SPDX-License-Identifier: Apache-2.0
#include "suite/together.hpp"
#include "suites/gemm/gemm_metrics.hpp"
#include "suites/gemm/gemm_work.hpp"

namespace assay::gemm {

void run_peak(const Case& c, Context& context) {
  const GemmWork work = work_from(c);
  context.record.declare(metrics().of("peak", "throughput"));
  context.record.parameter("kernel", "register-resident FMA");
  record_identity(context);

  SamplingPlan plan = context.sampling(c.seconds);
  plan.repetitions = 1;
  const double quantum_s = c.seconds > 0.5 ? 0.02 : 0.01;
  double rate = 0;
  bool wrong = false;
  Operation op;
  op.run = [&](std::uint64_t k) {
    for (std::uint64_t i = 0; i < k; ++i) {
      rate = context.device.fma_peak(work.type, quantum_s);
      wrong = wrong || rate <= 0;
    }
  };
  // The loop runs for a given time, so a sample is the time per 1e9 operations.
  op.timed_elsewhere = [&] { return 1e9 / rate; };

  Together together(context.node);
  const auto measure = [&](const Operation& operation, const SamplingPlan& by) {
    const SampleSeries series = sample(operation, by);
    if (together.failed()) return;
    if (wrong) record_wrong_arithmetic(context);
    auto& row = context.record.add_row(context.device_entity);
    for (const double start : series.start_s) row.t.push_back(context.since_start(start));
    row.block = series.block;
    auto& throughput = row.values["throughput"];
    for (const double seconds : series.seconds) throughput.push_back(1e9 / seconds);
    context.record.add_time(series.warmup_s, series.timed_s, series.verify_s);
  };
  if (work.together) {
    measure(together.wrap(op), together.wrap(plan));
  } else {
    context.take_turns(c.turns, [&] { together.guarded([&] { measure(op, plan); }); });
    share_times(context.record, context.node);
  }
  together.rethrow();
}

}  // namespace assay::gemm
