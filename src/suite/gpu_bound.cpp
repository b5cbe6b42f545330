// SPDX-License-Identifier: Apache-2.0
#include "suite/gpu_bound.hpp"

#include <string_view>

#include "measure/statistics.hpp"

namespace assay {

Gpu own_gpu(const RankEnvironment& environment) {
  const RankPlace& me = environment.topology.me();
  if (me.gpu < 0 || me.shares_gpu) return {};
  return environment.topology.my_node().gpus[static_cast<std::size_t>(me.gpu)];
}

void declare_bound(const results::MetricSpec& share, const GpuBound& bound, CaseRecord& record) {
  record.declare(share);
  record.parameter("bound", bound.by);
  record.parameter("bound_floor", bound.floor);
}

GpuBound part_bound(const GpuBound& of_case, const GpuBound& part) {
  const bool same = std::string_view(part.by) == of_case.by && part.floor >= of_case.floor;
  return same ? part : GpuBound{unsupported, of_case.by, of_case.floor};
}

void add_bound_share(CaseRecord::Row& row, const std::string& rate, const GpuBound& bound) {
  const auto values = row.values.find(rate);
  const bool measured = values != row.values.end() && !values->second.empty() && bound.known();
  row.values["bound_share"] = {measured ? median(values->second) / bound.rate : unsupported};
}

}  // namespace assay
