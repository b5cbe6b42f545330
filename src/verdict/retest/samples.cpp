// SPDX-License-Identifier: Apache-2.0
#include "verdict/retest/samples.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "measure/statistics.hpp"
#include "verdict/judgement.hpp"

namespace assay::verdict {

std::vector<TakenSample> samples_of(const results::CaseData& c, const results::Metric& m, std::size_t row) {
  const std::size_t width = m.per_sample ? c.samples() : 1;
  const std::size_t taken = row < c.count.size() && m.per_sample
                                ? std::min(width, static_cast<std::size_t>(std::max(0, c.count[row])))
                                : width;
  const auto values = m.values.held(), t = c.t.held();
  std::vector<TakenSample> samples;
  for (std::size_t s = 0; s < taken; ++s) {
    const std::size_t i = row * width + s;
    if (i >= values.size() || std::isnan(values[i])) continue;
    samples.push_back({bounded(values[i]), i < t.size() ? t[i] : results::not_taken,
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
  std::vector<std::vector<double>> values;
  std::map<std::int32_t, std::size_t> known;  // by number: those of an imported file may take turns
  for (const TakenSample& s : samples) {
    const auto [at, fresh] = known.try_emplace(s.block, blocks.size());
    if (fresh) {
      blocks.emplace_back();
      values.emplace_back();
    }
    SampleBlock& block = blocks[at->second];
    values[at->second].push_back(s.value);
    if (std::isnan(s.t)) continue;
    block.first_t = std::isnan(block.first_t) ? s.t : std::min(block.first_t, s.t);
    block.last_t = std::isnan(block.last_t) ? s.t : std::max(block.last_t, s.t);
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i].median = median(values[i]);
  return blocks;
}

}  // namespace assay::verdict
