// SPDX-License-Identifier: Apache-2.0
// Who looks slow against a baseline or its own past, and is to be measured again before it is called faulty.
#include <algorithm>
#include <map>
#include <set>

#include "base/random.hpp"
#include "verdict/confirming.hpp"
#include "verdict/constants.hpp"
#include "verdict/references.hpp"
#include "verdict/reference_scores.hpp"

namespace assay::verdict {
namespace {

constexpr std::size_t most_per_case = 32;

bool is_suspicion(const Judgement& j, const Found& f) {
  const auto& finding = f.finding;
  const bool baseline = finding.reference_kind == "baseline" && finding.kind == "slow";
  // A first change against the own past warns, confirmed or not; a second one in a row may fail.
  const bool history = finding.reference_kind == "history" && finding.kind == "drift" && finding.since != j.results.info.started;
  return (baseline || history) && !finding.confirmed && !f.rows.empty() && finding.deficit.value_or(0) > fault_delta(finding.suite);
}

/// K of the next confirming case, and whether the entity was measured again before.
int next_number(const Judgement& j, const Series& s, std::set<std::int32_t>& suspects) {
  int last = 0;
  for (const auto& c : j.results.cases) {
    const int number = confirming_number(c.name);
    if (number == 0 || c.suite != s.suite || base_name(c.name) != s.name) continue;
    last = std::max(last, number);
    for (const auto row : c.entity) suspects.erase(row);
  }
  return last + 1;
}

}  // namespace

std::vector<Recheck> reference_rechecks(const Judgement& judged) {
  Judgement j(judged.results, judged.options);
  j.series = judged.series;
  judge_references(j);
  std::map<std::string, std::set<std::int32_t>> wanted;  // by metric
  for (const auto& f : j.found) {
    if (!is_suspicion(j, f)) continue;
    for (const auto row : f.rows) wanted[f.finding.metric].insert(row);
  }
  std::vector<Recheck> asked;
  for (const auto& s : j.series) {
    const auto at = wanted.find(s.full());
    // Links have schedules of their own.
    if (at == wanted.end() || s.kind == "link") continue;
    const int number = next_number(j, s, at->second);
    if (at->second.empty() || number > constants::confirm_most_cases) continue;
    Recheck r;
    r.suite = s.suite;
    r.name = s.name;
    r.metric = s.metric;
    r.number = number;
    std::vector<std::int32_t> others;
    for (const auto& row : s.rows) {
      const bool suspect = at->second.contains(row.entity);
      if (suspect && r.candidates.size() < most_per_case) r.candidates.push_back(row.entity);
      if (!suspect) others.push_back(row.entity);
    }
    const auto order = RandomStream(j.results.info.seed, "reference " + s.full()).permutation(others.size());
    for (std::size_t i = 0; i < std::min(constants::confirm_controls, others.size()); ++i) r.controls.push_back(others[order[i]]);
    std::sort(r.controls.begin(), r.controls.end());
    if (!r.candidates.empty()) asked.push_back(std::move(r));
  }
  return asked;
}

}  // namespace assay::verdict
