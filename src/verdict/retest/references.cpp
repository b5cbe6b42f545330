// SPDX-License-Identifier: Apache-2.0
// Who looks slow against a limit, a physical floor, a baseline or its own past, and is to be measured again
// before it is called faulty.
#include <algorithm>
#include <map>
#include <set>

#include "base/random.hpp"
#include "verdict/constants.hpp"
#include "verdict/network_constants.hpp"
#include "verdict/network_links.hpp"
#include "verdict/reference_scores.hpp"
#include "verdict/references.hpp"
#include "verdict/retest/candidates.hpp"
#include "verdict/retest/result.hpp"

namespace assay::verdict {
namespace {

constexpr std::size_t most_per_case = 32;

bool is_suspicion(const Judgement& j, const Found& f) {
  const auto& finding = f.finding;
  // A bound is a promise: whatever breaks it is looked at twice. Counts and shares of memory are exact.
  if (finding.reference_kind == "limit" || finding.reference_kind == "physical")
    return finding.kind == "slow" && finding.unit != "count" && finding.unit != "1";
  const bool baseline = finding.reference_kind == "baseline" && finding.kind == "slow";
  // A first change against the own past warns, confirmed or not; a second one in a row may fail.
  const bool history = finding.reference_kind == "history" && finding.kind == "drift" &&
                       finding.since != j.results.info.started;
  if (!(baseline || history) || finding.confirmed) return false;
  const Series* s = series_of(j, finding);
  return s != nullptr && finding.deficit.value_or(0) > s->judging.fault_threshold;
}

/// Rows of /entities to be measured again, by metric: those of links among them.
using Wanted = std::map<std::string, std::set<std::int32_t>>;

/// Whether a row of a series is what a finding is about: itself, or the part that stands for it; of a
/// collective all.
bool concerns(const Judgement& j, const network::Places& places, const Found& f, const SeriesRow& row) {
  if (f.rows.empty()) return true;
  const bool link = row.source >= 0;
  if (link && f.finding.level == "link")
    return std::find(f.rows.begin(), f.rows.end(), row.entity) != f.rows.end();
  return std::any_of(f.rows.begin(), f.rows.end(), [&](std::int32_t part) {
    const auto is_on = [&](std::int32_t end) {
      return part == end || part == j.entities.node(end) || part == places.switch_of(end);
    };
    return part >= 0 &&
           (link ? part == row.entity || is_on(row.source) || is_on(row.destination)
                 : part == row.entity || (f.finding.level == "node" && part == j.entities.node(row.entity)));
  });
}

Wanted wanted_of(const Judgement& judged) {
  Judgement j(judged.results, judged.options);
  j.series = judged.series;
  suspect_by_limits(j);
  judge_references(j);
  judge_physical(j);
  const network::Places places(j);
  Wanted wanted;
  for (const auto& f : j.found) {
    if (!is_suspicion(j, f)) continue;
    auto& rows = wanted[f.finding.metric];
    for (const auto& s : j.series) {
      if (s.full() != f.finding.metric) continue;
      for (const auto& row : s.rows)
        if (concerns(j, places, f, row)) rows.insert(row.entity);
    }
  }
  return wanted;
}

/// Takes those that were measured again out of `suspects`.
void erase_retested(const Judgement& j, const Series& s, std::set<std::int32_t>& suspects) {
  for (const auto& c : j.results.cases)
    if (is_retest_of(c, s))
      for (const auto row : c.entity) suspects.erase(row);
}

/// Takes the links of ends that a retest has shown to be slow out of `suspects`.
void erase_explained(const Series& s, const std::set<std::int32_t>& slow_ends,
                     std::set<std::int32_t>& suspects) {
  for (const auto& row : s.rows)
    if (slow_ends.contains(row.source) || slow_ends.contains(row.destination)) suspects.erase(row.entity);
}

/// The links of `wanted`, in rounds of disjoint pairs, each round several times.
void add_links(Retest& r, const Series& s, const std::set<std::int32_t>& wanted) {
  r.samples = constants::network_retest_samples;
  std::vector<std::vector<LinkEnds>> rounds;
  std::vector<std::set<std::int32_t>> busy;
  std::set<std::pair<std::int32_t, std::int32_t>> pairs;
  std::set<std::int32_t> ends;
  for (const auto& row : s.rows) {
    if (!wanted.contains(row.entity) || pairs.size() >= most_per_case) continue;
    // A round measures both directions of a pair.
    if (!pairs.insert(std::minmax(row.source, row.destination)).second) continue;
    std::size_t k = 0;
    while (k < rounds.size() && (busy[k].contains(row.source) || busy[k].contains(row.destination))) ++k;
    if (k == rounds.size()) {
      rounds.emplace_back();
      busy.emplace_back();
    }
    rounds[k].push_back({row.source, row.destination});
    for (const auto end : {row.source, row.destination}) {
      busy[k].insert(end);
      ends.insert(end);
    }
  }
  for (int repeat = 0; repeat < constants::network_pair_repeats; ++repeat)
    r.rounds.insert(r.rounds.end(), rounds.begin(), rounds.end());
  r.candidates.assign(ends.begin(), ends.end());
}

}  // namespace

std::vector<Retest> reference_retests(const Judgement& j, const NetworkRetests& network) {
  auto wanted = wanted_of(j);
  std::vector<Retest> asked;
  for (const auto& s : j.series) {
    const auto at = wanted.find(s.full());
    if (at == wanted.end() || !s.per_sample) continue;  // of one value a case there are never enough
    erase_retested(j, s, at->second);
    erase_explained(s, network.slow_ends, at->second);
    Retest r = next_retest(j, s.suite, s.name, s.metric);
    if (at->second.empty() || r.number > constants::retest_most_cases) continue;
    if (s.kind == "link") {
      add_links(r, s, at->second);
      if (!r.rounds.empty()) asked.push_back(std::move(r));
      continue;
    }
    std::vector<std::int32_t> others;
    for (const auto& row : s.rows) {
      const bool suspect = at->second.contains(row.entity);
      if (suspect && r.candidates.size() < most_per_case) r.candidates.push_back(row.entity);
      if (!suspect) others.push_back(row.entity);
    }
    const auto order = RandomStream(j.results.info.seed, "reference " + s.full()).permutation(others.size());
    for (std::size_t i = 0; i < std::min(constants::retest_controls, others.size()); ++i)
      r.controls.push_back(others[order[i]]);
    std::sort(r.controls.begin(), r.controls.end());
    if (!r.candidates.empty()) asked.push_back(std::move(r));
  }
  return asked;
}

}  // namespace assay::verdict
