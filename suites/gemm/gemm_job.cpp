// SPDX-License-Identifier: Apache-2.0
#include "suites/gemm/gemm_job.hpp"

#include "base/error.hpp"

namespace assay::gemm {

NumType type_from(const std::string& text) {
  if (const auto type = num_type(text)) return *type;
  throw_usage("--gemm.dtypes: '" + text + "' is no number type");
}

Job job_from(const Case& c) {
  Job job;
  job.type = type_from(c.parameters.at("dtype").get<std::string>());
  job.n = c.parameters.value("n", std::size_t{0});
  job.together = c.parameters.at("mode") == "together";
  if (c.parameters.value("distribution", "") == "integers") job.output = Output::exact;
  job.sustained_s = c.parameters.value("sustained_s", 0.0);
  return job;
}

double peak_seconds(Level level) noexcept {
  return level == Level::smoke ? 0.03 : level == Level::quick ? 0.08 : 0.25;
}

void record_identity(Context& context) {
  for (const auto& [key, value] : context.device.identity()) context.record.parameter(key, value);
}

}  // namespace assay::gemm
