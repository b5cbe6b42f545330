// SPDX-License-Identifier: Apache-2.0
#include "suites/train/analysis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/clock.hpp"
#include "measure/robust.hpp"
#include "measure/statistics.hpp"

namespace assay::train {

double own_gemm_rate(const Job& job, Context& context) {
  constexpr int rounds = 5;
  constexpr std::size_t matrix = gemm_n * gemm_n;
  std::byte* base = context.device.arena().data() + Gpt::bytes(job.preset.model, job.preset.batch);
  float* a = reinterpret_cast<float*>(base + (64 - reinterpret_cast<std::uintptr_t>(base) % 64) % 64);
  context.device.fill_uniform(NumType::fp32, a, 2 * matrix, context.random.child("gemm").key());
  const Matmul shape{gemm_n, gemm_n, gemm_n, false, false, false};
  context.world.barrier();
  double best = 0;
  for (int i = 0; i < rounds; ++i) {
    const double begin = now_s();
    context.device.matmul(NumType::fp32, shape, a, a + matrix, a + 2 * matrix);
    context.device.synchronize();
    best = std::max(best, shape.flops() / (now_s() - begin));
  }
  return best;
}

void declare_analysis(CaseRecord& record) {
  using results::Better;
  using results::Role;
  for (const char* name : {"gemm_rate", "flop_rate"})
    record.declare({name, "FLOP/s", Better::higher, false, Role::covariate, false});
  for (const char* name : {"utilization", "straggler_relative", "straggler_individual"})
    record.declare({name, "1", Better::higher, false, Role::covariate, false});
  for (const char* name : {"jitter", "drift"})
    record.declare({name, "1", Better::lower, false, Role::covariate, false});
  for (const char* stage : frontier_names)
    record.declare({std::string("frontier_") + stage, "1", Better::lower, false, Role::covariate, false});
}

void analyse(const Job& job, const StepLog& log, const FrontierSum& frontier, double gemm_rate, CaseRecord::Row& row,
             Context& context) {
  const std::vector<double>& steps = row.values.at("step");
  const double flops = job.preset.model.flops_per_token() * static_cast<double>(job.preset.tokens());
  const double typical = median(steps);
  row.values["gemm_rate"] = {gemm_rate};
  row.values["flop_rate"] = {flops / typical};
  row.values["utilization"] = {flops / typical / gemm_rate};
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
  context.record.event("straggler",
                       fmt::format("{}: {:.1f} % more compute time per step than the fastest rank; it leads in {}",
                                   name_of_rank(context, context.world.rank()), (1 / score.relative - 1) * 100,
                                   frontier_names[frontier.worst()]),
                       context.device_entity);
}

}  // namespace assay::train
