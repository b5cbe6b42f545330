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
  const auto rates = m->values.held(), numbers = group->values.held();
  std::map<int, Draw> own;
  for (std::size_t r = 0; r < c.entities(); ++r) {
    const auto row = unit == Unit::device ? c.entity[r] : j.entities.node(c.entity[r]);
    for (std::size_t i = 0; i < width && (r >= c.count.size() || static_cast<int>(i) < c.count[r]); ++i) {
      const double rate = bounded(rates[r * width + i]), number = numbers[r * width + i];
      if (!(rate > 0) || std::isinf(rate) || !(number >= 0) || number > 1e9 || row < 0) continue;
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

std::vector<Draw> draws_of(const Judgement& j, const Series& s, bool retest) {
  std::vector<Draw> draws;
  for (const auto& c : j.results.cases) {
    if (c.suite != s.suite || c.case_key != s.first->case_key || (retest_number(c.name) > 0) != retest ||
        base_name(c.name) != s.name || c.state != results::CaseState::pass)
      continue;
    auto own = draws_of(j, c, s.metric, unit_of(s));
    std::move(own.begin(), own.end(), std::back_inserter(draws));
  }
  return draws;
}

Unit unit_of(const Series& s) { return rails_of(*s.first) > 1 ? Unit::device : Unit::node; }

int rails_of(const results::CaseData& c) {
  const auto it = c.parameters.find("rails");
  const double rails = it != c.parameters.end() && it->is_number() ? it->get<double>() : 1;
  return rails >= 1 && rails < 1e5 ? static_cast<int>(rails) : 1;
}

std::string text_parameter(const results::CaseData& c, const char* key) {
  const auto it = c.parameters.find(key);
  return it != c.parameters.end() && it->is_string() ? it->get<std::string>() : "";
}

std::vector<Below> one_for_each_communicator(const Judgement& j, const Series& s,
                                             const std::vector<Below>& below) {
  const auto shared = s.judging.shared_by;
  if (!s.is_of(results::MetricClass::collective) ||
      (shared != results::SharedBy::world && shared != results::SharedBy::node))
    return below;
  std::map<std::int32_t, Below> slowest;
  for (const auto& b : below) {
    const auto whom = shared == results::SharedBy::node ? j.entities.node(b.entity) : -1;
    const auto [at, fresh] = slowest.try_emplace(whom, b);
    if (!fresh && (b.higher_is_better ? b.value < at->second.value : b.value > at->second.value))
      at->second = b;
    at->second.entity = whom;
    at->second.row = nullptr;
  }
  std::vector<Below> out;
  for (auto& [whom, b] : slowest) {
    b.rows = whom >= 0 ? std::vector{whom} : std::vector<std::int32_t>{};
    out.push_back(std::move(b));
  }
  return out;
}

}  // namespace assay::verdict
