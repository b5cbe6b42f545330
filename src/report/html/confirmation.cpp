// SPDX-License-Identifier: Apache-2.0
#include "report/html/confirmation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "report/link_ends.hpp"
#include "report/summary_data.hpp"
#include "report/words.hpp"
#include "results/case_name.hpp"

namespace assay::report {
namespace {

/// Whether a row of a case is about a part that is named, itself or through its node or an end.
bool concerns(const std::set<std::string>& named, const results::Results& results, const results::CaseData& c,
              std::size_t row) {
  const auto is_named = [&](const std::string& name) {
    return named.contains(name) || named.contains(node_of(name));
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
  if (f.confirmed_by == "fact") return fact_words(f);
  if (f.confirmed_by != "retest") {
    const std::string words = confirmation_words(f);
    return words.empty() ? "yes" : "yes: " + words;
  }
  const std::size_t samples = samples_of(f);
  return "yes: measured again" + (samples > 0 ? fmt::format(", {} samples of retests", samples) : "");
}

}  // namespace assay::report
