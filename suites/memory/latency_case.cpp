// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "base/clock.hpp"
#include "suite/together.hpp"
#include "suites/memory/layout.hpp"
#include "suites/memory/memory_cases.hpp"
#include "suites/memory/memory_metrics.hpp"

namespace assay::memory {
namespace {

/// Walks `steps` links of the case's cycle and returns the nanoseconds of a load. Within the case nothing
/// else writes to that memory: a link that is broken is a wrong value.
double walk(const Case& c, Context& context, std::uint64_t key, std::uint64_t steps) {
  const ChaseTime time = context.device.chase(context.device.arena().data(), c.bytes, steps, key);
  if (const auto& b = time.broken)
    context.record.miscompare({"", context.device_entity, b->byte_index, b->expected, b->actual, b->reread,
                               context.since_start(now_s())});
  return time.ns;
}

}  // namespace

void run_latency(const Case& c, Context& context) {
  const bool cached = c.parameters.at("cached") == 1;
  auto& latency = context.record.declare(metrics().of("latency", "latency"));
  if (cached) {
    latency.required = false;
    latency.role = results::Role::covariate;
  }
  context.record.declare_integers("steps", {}, {});
  for (const auto& [key, value] : context.device.identity()) context.record.parameter(key, value);
  const std::uint64_t key = context.random.key();
  Together together(context.node);
  // The first walk builds the cycle: all ranks do that before the turns.
  const double begin = now_s();
  together.guarded([&] {
    context.device.reserve(c.bytes);
    walk(c, context, key, 1000);
  });
  // Steps that a device as slow as a probe shows gets through in its share of the time.
  std::uint64_t steps = chase_steps;
  together.guarded([&] {
    constexpr std::uint64_t few = chase_steps / 64;
    double least_s = std::numeric_limits<double>::infinity();
    for (int tries = 0; tries < 2; ++tries) {  // the second, since the core may have been away
      const double start = now_s();
      walk(c, context, key, few);
      context.apply_injected_delay(start, 1, true);
      context.count_batch();
      least_s = std::min(least_s, now_s() - start);
      steps = fitted_steps(chase_steps, least_s / static_cast<double>(few), c.seconds / 4);
      if (steps == chase_steps) break;
    }
  });
  const double setup_s = now_s() - begin;
  SamplingPlan plan = context.sampling(c.seconds);
  plan.repetitions = 1;
  double latency_s = 0;
  Operation op;
  op.run = [&](std::uint64_t k) {
    double sum = 0;
    for (std::uint64_t i = 0; i < k; ++i) sum += walk(c, context, key, steps) * 1e-9;
    latency_s = sum / static_cast<double>(k);
  };
  op.timed_elsewhere = [&] { return latency_s; };
  context.take_turns(c.turns, [&] {
    together.guarded([&] {
      const SampleSeries series = sample(op, plan);
      auto& row = context.record.add_row(context.device_entity);
      for (const double start : series.start_s) row.t.push_back(context.since_start(start));
      row.block = series.block;
      row.values["latency"] = series.seconds;
      row.integers["steps"] = {steps};
      context.record.add_time(series.warmup_s, series.timed_s, 0);
    });
  });
  share_times(context.record, context.node);
  context.record.add_time(setup_s, 0, 0);
  together.rethrow();
}

}  // namespace assay::memory
