// SPDX-License-Identifier: Apache-2.0
#include "verdict/retest/samples.hpp"

#include <algorithm>
#include <cmath>

#include "measure/statistics.hpp"

namespace assay::verdict {

std::vector<TakenSample> samples_of(const results::CaseData& c, const results::Metric& m, std::size_t row) {
  const std::size_t width = m.per_sample ? c.samples() : 1;
  const std::size_t taken = row < c.count.size() && m.per_sample
                                ? std::min(width, static_cast<std::size_t>(std::max(0, c.count[row])))
                                : width;
  std::vector<TakenSample> samples;
  for (std::size_t s = 0; s < taken; ++s) {
    const std::size_t i = row * width + s;
    if (i >= m.values.size() || std::isnan(m.values[i])) continue;
    samples.push_back({m.values[i], i < c.t.size() ? c.t[i] : results::not_taken,
                       s < c.block.size() ? c.block[s] : -1 - static_cast<std::int32_t>(s)});
  }
  return samples;
}

std::vector<double> values_of(const std::vector<TakenSample>& samples) {
  std::vector<double> values;
  for (const auto& s : samples) values.push_back(s.value);
  return values;
}

std::vector<SampleBlock> blocks_of(const std::vector<TakenSample>& samples) {
  std::vector<SampleBlock> blocks;
  std::vector<double> values;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (values.empty()) blocks.emplace_back();
    values.push_back(samples[i].value);
    if (std::isnan(blocks.back().first_t)) blocks.back().first_t = samples[i].t;
    if (!std::isnan(samples[i].t)) blocks.back().last_t = samples[i].t;
    if (i + 1 < samples.size() && samples[i + 1].block == samples[i].block) continue;
    blocks.back().median = median(values);
    values.clear();
  }
  return blocks;
}

}  // namespace assay::verdict
