// SPDX-License-Identifier: Apache-2.0
// Whether a metric was measured well enough to be judged at all.
#include <cmath>

#include "verdict/constants.hpp"
#include "verdict/judgement.hpp"

namespace assay::verdict {

void judge_noise(Judgement& j) {
  for (const auto& s : j.series) {
    if (!s.required || !s.judged || !s.per_sample || s.suite == "inventory") continue;
    const SeriesRow* worst = nullptr;
    double worst_delta = 0;
    std::vector<std::int32_t> rows;
    for (const auto& row : s.rows) {
      if (std::isnan(row.standard_error) || !(std::abs(row.median) > 0)) continue;
      const double delta = constants::noise_z * row.standard_error / std::abs(row.median);
      if (delta <= constants::noise_limit) continue;
      const auto own = rows_of(row);
      rows.insert(rows.end(), own.begin(), own.end());
      if (worst != nullptr && delta <= worst_delta) continue;
      worst = &row;
      worst_delta = delta;
    }
    if (worst == nullptr) continue;
    const bool open = j.at_least_standard();
    auto f = j.about(worst->entity, open ? "WARN" : "INFO", "magnitude", "noisy");
    f.name = name_of(j, *worst);
    f.level = s.kind;
    f.suite = s.suite;
    f.metric = s.full();
    f.unit = s.unit;
    f.value = worst->median;
    f.samples = worst->n;
    f.action = "MONITOR";
    f.evidence = s.path;
    f.text = s.full() + " is judged to " + percent(worst_delta) + " only, more than " +
             percent(constants::noise_limit) + ": worst " + f.name + " (n=" + std::to_string(worst->n) + ")";
    j.add(std::move(f), rows, open);
  }
}

}  // namespace assay::verdict
