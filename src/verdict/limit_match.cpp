// SPDX-License-Identifier: Apache-2.0
#include "verdict/limit_match.hpp"

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

bool LimitMatch::row(const Limit& limit, const SeriesRow& row) const {
  const std::string& pattern = limit.device;
  if (pattern == "*" || glob(pattern, name_of(j_, row))) return true;
  for (const auto r : rows_of(row)) {
    const auto node = j_.entities.node(r);
    for (const auto candidate : {r, node}) {
      if (!j_.entities.valid(candidate)) continue;
      if (glob(pattern, j_.entities.name(candidate))) return true;
      const auto it = models_.find(candidate);
      if (it != models_.end() && glob(pattern, it->second)) return true;
    }
  }
  return false;
}

}  // namespace assay::verdict
