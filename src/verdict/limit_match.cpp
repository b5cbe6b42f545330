// SPDX-License-Identifier: Apache-2.0
#include "verdict/limit_match.hpp"

#include <algorithm>

namespace assay::verdict {

LimitMatch::LimitMatch(const Judgement& j) : j_(j) {
  for (const char* kind : {"node", "device", "cpu"}) {
    const auto it = j.results.inventory.find(kind);
    if (it == j.results.inventory.end()) continue;
    const auto* text = text_column(it->second, {"cpu_model", "model"});
    for (std::size_t i = 0; text != nullptr && i < text->size(); ++i)
      models_[it->second.entity[i]] = (*text)[i];
  }
}

bool LimitMatch::series(const Limit& limit, const Series& s) const {
  return s.metric == limit.metric && glob(limit.case_glob, s.suite + "/" + s.name);
}

bool LimitMatch::names(const Limit& limit, const SeriesRow& row) const {
  const std::string& pattern = limit.device;
  if (glob(pattern, name_of(j_, row))) return true;
  const auto named = [&](std::int32_t r) {
    return j_.entities.valid(r) && glob(pattern, j_.entities.name(r));
  };
  return std::ranges::any_of(rows_of(row),
                             [&](std::int32_t r) { return named(r) || named(j_.entities.node(r)); });
}

bool LimitMatch::row(const Limit& limit, const SeriesRow& row) const {
  if (limit.device == "*" || names(limit, row)) return true;
  for (const auto r : rows_of(row))
    for (const auto candidate : {r, j_.entities.node(r)}) {
      const auto it = models_.find(candidate);
      if (it != models_.end() && glob(limit.device, it->second)) return true;
    }
  return false;
}

}  // namespace assay::verdict
