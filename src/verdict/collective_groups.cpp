// SPDX-License-Identifier: Apache-2.0
#include "verdict/collective_groups.hpp"

#include <cmath>

namespace assay::verdict {

std::vector<Draw> draws_of(const Judgement& j, const results::CaseData& c, const std::string& metric,
                           Unit unit) {
  const auto *m = c.find(metric), *group = c.find("group");
  const std::size_t width = c.samples();
  std::vector<Draw> draws;
  if (m == nullptr || group == nullptr || !group->per_sample || m->values.size() < c.entities() * width ||
      group->values.size() < c.entities() * width)
    return draws;
  std::map<int, Draw> own;
  for (std::size_t r = 0; r < c.entities(); ++r) {
    const auto row = unit == Unit::device ? c.entity[r] : j.entities.node(c.entity[r]);
    for (std::size_t i = 0; i < width && (r >= c.count.size() || static_cast<int>(i) < c.count[r]); ++i) {
      const double rate = m->values[r * width + i], number = group->values[r * width + i];
      if (!(rate > 0) || !(number >= 0) || number > 1e9 || row < 0) continue;
      const int of = static_cast<int>(number / 1e6), in = static_cast<int>(number) - of * 1000000;
      Draw& draw = own[of];
      draw.number = of;
      draw.rates[in].push_back(std::log(rate));
      draw.units[in].insert(row);
    }
  }
  for (auto& [number, draw] : own) draws.push_back(std::move(draw));
  return draws;
}

int rails_of(const results::CaseData& c) {
  const auto it = c.parameters.find("rails");
  const double rails = it != c.parameters.end() && it->is_number() ? it->get<double>() : 1;
  return rails >= 1 && rails < 1e5 ? static_cast<int>(rails) : 1;
}

std::string text_parameter(const results::CaseData& c, const char* key) {
  const auto it = c.parameters.find(key);
  return it != c.parameters.end() && it->is_string() ? it->get<std::string>() : "";
}

}  // namespace assay::verdict
