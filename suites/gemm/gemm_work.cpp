// SPDX-License-Identifier: Apache-2.0
#include "suites/gemm/gemm_work.hpp"

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

std::size_t fitted_size(std::size_t n, double probe_s, double share_s) noexcept {
  double single_s = probe_s * static_cast<double>(probe_divisor * probe_divisor * probe_divisor);
  if (single_s <= patience * share_s) return n;
  const std::size_t least = n / probe_divisor;
  while (n > least && single_s > share_s) {
    n /= 2;
    single_s /= 8;
  }
  return n;
}

double peak_seconds(Level level) noexcept {
  return level == Level::smoke ? 0.03 : level == Level::quick ? 0.08 : 0.25;
}

void record_identity(Context& context) {
  for (const auto& [key, value] : context.device.identity()) context.record.parameter(key, value);
}

}  // namespace assay::gemm
