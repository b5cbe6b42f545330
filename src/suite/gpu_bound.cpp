// SPDX-License-Identifier: Apache-2.0
#include "suite/gpu_bound.hpp"

#include "measure/statistics.hpp"

namespace assay {

Gpu own_gpu(const RankEnvironment& environment) {
  const RankPlace& me = environment.topology.me();
  if (me.gpu < 0 || me.shares_gpu) return {};
  return environment.topology.my_node().gpus[static_cast<std::size_t>(me.gpu)];
}

void declare_bound(const results::MetricSpec& share, const GpuBound& bound, Context& context) {
  context.record.declare(share);
  context.record.parameter("bound", bound.by);
  context.record.parameter("bound_floor", bound.floor);
}

void add_bound_share(CaseRecord::Row& row, const std::string& rate, const GpuBound& bound) {
  const auto values = row.values.find(rate);
  const bool measured = values != row.values.end() && !values->second.empty() && bound.known();
  row.values["bound_share"] = {measured ? median(values->second) / bound.rate : unsupported};
}

}  // namespace assay
