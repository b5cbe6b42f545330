// SPDX-License-Identifier: Apache-2.0
// RAM patterns on GPUs that load the memory less than the GPU's own copy does. A ratio to a device's own
// bandwidth explains and never judges: notes, whatever their number.
#include <algorithm>

#include "verdict/constants.hpp"
#include "verdict/judgement.hpp"

namespace assay::verdict {
namespace {

double number_of(const Json& parameters, const char* name) {
  const auto it = parameters.find(name);
  return it != parameters.end() && it->is_number() ? it->get<double>() : 0.0;
}

/// Only where a sample lasts long enough.
bool is_meant(const Series& s) {
  if (s.judging.floor != results::Floor::own_rate || s.first == nullptr) return false;
  const double chunks = std::max(1.0, number_of(s.first->parameters, "chunks"));
  return number_of(s.first->parameters, "planned_bytes") / chunks >= constants::pattern_chunk_bytes;
}

}  // namespace

void judge_patterns(Judgement& j) {
  for (const auto& s : j.series) {
    if (!is_meant(s)) continue;
    std::vector<const SeriesRow*> below;
    for (const auto& row : s.rows) {
      // Ranks that share a GPU get what is left of it.
      if (row.median < constants::pattern_efficiency && !j.entities.shares_cores(row.entity))
        below.push_back(&row);
    }
    if (below.empty()) continue;
    std::sort(below.begin(), below.end(), [](const auto* a, const auto* b) { return a->median < b->median; });
    const SeriesRow& worst = *below.front();
    auto f = j.about(s, below.size() == 1 ? worst.entity : -1, "INFO", "fact", "slow");
    for (const auto* row : below)
      if (below.size() > 1 && f.members.size() < constants::list_members)
        f.members.push_back(j.entities.name(row->entity));
    f.value = worst.median;
    f.reference = constants::pattern_efficiency;
    f.deficit = deficit_of(worst.median, constants::pattern_efficiency, true);
    f.samples = worst.n;
    f.action = "MONITOR";
    f.text =
        j.entities.name(worst.entity) + ": " + s.suite + "/" + s.name + " ran at " + percent(worst.median) +
        " of the GPU's own copy bandwidth in this run, under " + percent(constants::pattern_efficiency) +
        (below.size() > 1
             ? ", the least of " + std::to_string(below.size()) + " GPUs of " + std::to_string(s.rows.size())
             : "");
    std::vector<std::int32_t> rows;
    for (const auto* row : below) rows.push_back(row->entity);
    j.add(std::move(f), rows);
  }
}

}  // namespace assay::verdict
