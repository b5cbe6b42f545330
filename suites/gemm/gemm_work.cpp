// SPDX-License-Identifier: Apache-2.0
#include "suites/gemm/gemm_work.hpp"

#include "base/clock.hpp"
#include "base/error.hpp"

namespace assay::gemm {

NumType type_from(const std::string& text) {
  if (const auto type = num_type(text)) return *type;
  throw_usage("--gemm.dtypes: '" + text + "' is no number type");
}

GemmWork work_from(const Case& c) {
  GemmWork work;
  work.type = type_from(c.parameters.at("dtype").get<std::string>());
  work.n = c.parameters.value("n", std::size_t{0});
  work.together = c.parameters.at("mode") == "together";
  if (c.parameters.value("distribution", "") == "integers") work.output = Output::exact;
  work.sustained_s = c.parameters.value("sustained_s", 0.0);
  return work;
}

double peak_seconds(Level level) noexcept {
  return level == Level::smoke ? 0.03 : level == Level::quick ? 0.08 : 0.25;
}

void record_identity(Context& context) {
  for (const auto& [key, value] : context.device.identity()) context.record.parameter(key, value);
}

void record_wrong_arithmetic(Context& context) {
  context.record.miscompare({"", context.device_entity, 0, 0, 0, 0, context.since_start(now_s())});
  context.record.event("miscompare", "multiply-adds in registers left the range in which their values stay",
                       context.device_entity);
}

}  // namespace assay::gemm
