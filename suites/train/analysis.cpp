// SPDX-License-Identifier: Apache-2.0
#include "suites/train/analysis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/clock.hpp"
#include "measure/robust.hpp"
#include "measure/statistics.hpp"
#include "suites/train/train_metrics.hpp"

namespace assay::train {

double own_gemm_rate(const TrainWork& work, Context& context) {
  constexpr int rounds = 5;
  const std::size_t n = gemm_rows(context.device.has_own_memory(), work.preset.model),
                    matrix = n * n * size_of(work.type);
  std::byte* a = context.device.arena().data() +
                 Gpt::bytes(work.preset.model, work.preset.batch, work.storage(replicas_of(context)));
  context.device.fill_uniform(work.type, a, 2 * n * n, context.random.child("gemm").key());
  context.device.synchronize();
  const Matmul shape{n, n, n, false, false, false};
  context.world.barrier();
  // A GPU ends one product sooner than a host starts it and waits.
  const double least_s = context.device.has_streams() ? 20e-3 : 0;
  double best = 0;
  std::uint64_t products = 1;
  for (int i = 0; i < rounds;) {
    const double begin = now_s();
    for (std::uint64_t k = 0; k < products; ++k)
      context.device.matmul(work.type, shape, a, a + matrix, a + 2 * matrix);
    context.device.synchronize();
    const double seconds = now_s() - begin;
    if (seconds < least_s) {
      products *= 2;
      continue;
    }
    best = std::max(best, static_cast<double>(products) * shape.flops() / seconds);
    ++i;
  }
  return best;
}

double own_bus_rate(const TrainWork& work, Context& context) {
  constexpr int rounds = 6;
  Communicator& ranks = replicas_of(context);
  if (ranks.size() == 1) return 0;
  const std::size_t count = std::min<std::size_t>(work.preset.model.parameters(), std::size_t{16} << 20);
  auto* data = reinterpret_cast<float*>(context.device.arena().data());
  context.device.fill_uniform(NumType::fp32, data, count, context.random.child("bus").key());
  context.device.synchronize();
  double best_s = std::numeric_limits<double>::infinity();
  for (int i = 0; i < rounds; ++i) {
    context.world.barrier();
    const double begin = now_s();
    ranks.order_after(context.device.stream());
    Request request;
    ranks.iall_reduce(data, count, DataType::fp32, ReduceOp::sum, request);
    ranks.wait_all({&request, 1});
    best_s = std::min(best_s, now_s() - begin);
  }
  const double n = ranks.size();
  return context.world.min(2 * (n - 1) / n * static_cast<double>(count * sizeof(float)) / best_s);
}

TrainWork with_pressure(TrainWork work, double gemm_rate, double bus_rate, int ranks) {
  if (work.pressure <= 0 || bus_rate <= 0) return work;
  const ModelShape& model = work.preset.model;
  const double n = ranks, bytes = 4.0 * static_cast<double>(model.parameters());
  const double communication_s = 2 * (n - 1) / n * bytes / bus_rate;
  const double tokens = communication_s * gemm_rate / (work.pressure * 2 / 3 * model.flops_per_token());
  const std::size_t planned = work.preset.batch;
  const double sequences =
      std::clamp(std::round(tokens / static_cast<double>(model.length)), 1.0, static_cast<double>(planned));
  work.preset.batch = static_cast<std::size_t>(sequences);
  work.passes = static_cast<int>((planned + work.preset.batch - 1) / work.preset.batch);
  return work;
}

void declare_analysis(CaseRecord& record, double nominal_peak) {
  for (const results::MetricSpec& m : metrics().all())
    if (m.operation == "together" && !m.per_sample && (m.name != "mfu" || nominal_peak > 0))
      record.declare(m);
}

void analyse(const TrainWork& work, const StepLog& log, const FrontierSum& frontier, double gemm_rate,
             CaseRecord::Row& row, Context& context) {
  const std::vector<double>& steps = row.values.at("step");
  const double flops = work.preset.model.flops_per_token() * static_cast<double>(work.tokens());
  const double typical = median(steps);
  row.values["gemm_rate"] = {gemm_rate};
  row.values["flop_rate"] = {flops / typical};
  row.values["utilization"] = {flops / typical / gemm_rate};
  if (const double peak = context.device.nominal_peak_flops(work.type); peak > 0)
    row.values["mfu"] = {flops / typical / peak};
  row.values["jitter"] = {quantile(steps, 0.99) / typical};
  if (steps.size() >= 10) row.values["drift"] = {robust_line(row.t, steps).slope / typical * 3600};
  for (std::size_t stage = 0; stage < frontier_stages; ++stage)
    row.values[std::string("frontier_") + frontier_names[stage]] = {frontier.share(stage)};

  const std::vector<double> own = log.compute_s();
  const double mine = median(own);
  std::vector<double> medians(static_cast<std::size_t>(context.world.size()));
  context.world.all_gather(&mine, medians.data(), sizeof mine);
  const StragglerScore score = straggler_score(medians, context.world.rank(), own);
  row.values["straggler_relative"] = {score.relative};
  row.values["straggler_individual"] = {score.individual};
  if (!score.straggles) return;
  context.record.event(
      "straggler",
      fmt::format("{}: {:.1f} % more compute time per step than the fastest rank; it leads in {}",
                  name_of_rank(context, context.world.rank()), (1 / score.relative - 1) * 100,
                  frontier_names[frontier.worst()]),
      context.device_entity);
}

}  // namespace assay::train
