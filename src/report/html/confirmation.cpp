// SPDX-License-Identifier: Apache-2.0
#include "report/html/confirmation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "report/summary_data.hpp"
#include "results/case_name.hpp"
#include "verdict/constants.hpp"

namespace assay::report {
namespace {

bool says(const results::Finding& f, const char* words) { return f.text.find(words) != std::string::npos; }

/// Whether a row of a case is about a part that is named, itself or through its node or an end.
bool concerns(const std::set<std::string>& named, const results::Results& results, const results::CaseData& c,
              std::size_t row) {
  const auto is_named = [&](const std::string& name) {
    return named.contains(name) || named.contains(name.substr(0, name.find('/')));
  };
  if (is_named(entity_name(results, c, row))) return true;
  return row < c.source.size() && row < c.destination.size() &&
         (is_named(entity_name(results, c.source[row])) ||
          is_named(entity_name(results, c.destination[row])));
}

std::string fact_words(const results::Finding& f) {
  if (f.kind == "corrupt") return "yes: a wrong result is a fact";
  if (f.kind == "missing") return "yes: a missing part is a fact";
  if (f.kind == "counter") return "yes: the counter is a fact";
  return "yes: a fact, which needs no second measurement";
}

}  // namespace

Retests::Retests(const results::Results& results) : results_(results) {
  for (const auto& c : results.cases)
    if (results::retest_number(c.name) > 0) cases_[c.suite + "/" + results::base_name(c.name)].push_back(&c);
}

std::size_t Retests::samples_of(const results::Finding& f) const {
  const auto colon = f.metric.rfind(':');
  if (colon == std::string::npos) return 0;
  const auto it = cases_.find(f.metric.substr(0, colon));
  if (it == cases_.end()) return 0;
  std::set<std::string> named(f.members.begin(), f.members.end());
  named.insert(f.name);
  std::size_t samples = 0;
  for (const auto* c : it->second) {
    const auto* m = c->find(f.metric.substr(colon + 1));
    if (m == nullptr) continue;
    const auto medians = row_medians(*c, *m);
    for (std::size_t row = 0; row < medians.size(); ++row)
      if (!std::isnan(medians[row]) && concerns(named, results_, *c, row))
        samples +=
            m->per_sample && row < c->count.size() ? static_cast<std::size_t>(std::max(0, c->count[row])) : 1;
  }
  return samples;
}

std::string Retests::confirmation_of(const results::Finding& f) const {
  if (!f.confirmed) return "no";
  if (f.claim == "fact") return fact_words(f);
  if (says(f, "while its throttle counter rose")) return "yes: its throttle counter rose meanwhile";
  if (says(f, " blocks over ")) return "yes: it lasted, in several blocks of samples over a minute";
  const std::size_t samples = samples_of(f);
  if (samples > 0) return fmt::format("yes: measured again, {} samples of retests", samples);
  if (says(f, "confirmed by the retest") || says(f, "confirmed by new groups")) return "yes: measured again";
  if (says(f, "certain by its size")) return "yes: by its size, in several cases";
  const bool large = f.deficit && *f.deficit > verdict::constants::coarse_deficit;
  if (f.ci_low && *f.ci_low > 0 && (f.reference_kind == "limit" || f.reference_kind == "physical"))
    return "yes: the whole 95 % interval lies beyond the bound; not measured again";
  if (large) return "yes: by its size, over 20 %; not measured again";
  if (f.reference_kind == "baseline" || f.reference_kind == "history")
    return "yes: it lasted, in three blocks of samples over a minute; not measured again";
  return "yes; not measured again";
}

}  // namespace assay::report
