// SPDX-License-Identifier: Apache-2.0
#include "suites/gemm/gemm_job.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace assay::gemm {

Layout make_layout(NumType type, const GemmShape& shape, std::uint64_t cache_bytes, std::uint64_t limit_bytes, Output output) {
  constexpr std::size_t page = 4096;
  Layout layout;
  layout.result_bytes = shape.m * shape.n * result_size(type, output);
  const std::size_t largest = std::max({layout.result_bytes, shape.m * shape.k * size_of(type), shape.k * shape.n * size_of(type)});
  // One page more than needed: matrices a power of two apart would all start in the same cache sets.
  layout.stride = (largest + page - 1) / page * page + page;
  const std::size_t set = 3 * layout.stride;
  const auto wanted = std::clamp<std::uint64_t>((2 * cache_bytes + set - 1) / set, 2, 8);
  for (std::uint64_t sets = wanted; sets >= 2; --sets)
    if (sets * set <= limit_bytes) {
      layout.inputs = layout.outputs = sets;
      return layout;
    }
  layout.inputs = 1;
  layout.outputs = 2;
  return layout;
}

NumType type_from(const std::string& text) {
  for (const NumType type : {NumType::fp64, NumType::fp32, NumType::tf32, NumType::fp16, NumType::bf16,
                             NumType::fp8, NumType::int8})
    if (text == to_string(type)) return type;
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
