// SPDX-License-Identifier: Apache-2.0
#include "verdict/retest/retest.hpp"

#include <algorithm>
#include <set>

#include "verdict/collectives.hpp"
#include "verdict/retest/candidates.hpp"

namespace assay::verdict {
namespace {

/// Strata and metrics of one case are measured again together: it is one measurement.
std::vector<Retest> joined(std::vector<Retest> asked) {
  std::vector<Retest> out;
  for (auto& r : asked) {
    const auto same = std::find_if(out.begin(), out.end(),
                                   [&](const Retest& o) { return o.suite == r.suite && o.name == r.name; });
    if (same == out.end()) {
      out.push_back(std::move(r));
      continue;
    }
    std::set<std::int32_t> candidates(same->candidates.begin(), same->candidates.end()),
        controls(same->controls.begin(), same->controls.end());
    candidates.insert(r.candidates.begin(), r.candidates.end());
    controls.insert(r.controls.begin(), r.controls.end());
    for (const auto row : candidates) controls.erase(row);
    same->candidates.assign(candidates.begin(), candidates.end());
    same->controls.assign(controls.begin(), controls.end());
    same->samples = std::max(same->samples, r.samples);
    same->number = std::max(same->number, r.number);
  }
  return out;
}

}  // namespace

Retest retest_of(const std::string& suite, const std::string& name, const std::string& metric, int number) {
  Retest r;
  r.suite = suite;
  r.name = name;
  r.metric = metric;
  r.number = number;
  return r;
}

Retest next_retest(const Judgement& j, const std::string& suite, const std::string& name,
                   const std::string& metric) {
  int number = 1;
  for (const auto& c : j.results.cases)
    if (c.suite == suite && base_name(c.name) == name) number = std::max(number, retest_number(c.name) + 1);
  return retest_of(suite, name, metric, number);
}

std::vector<Retest> retests(const results::Results& results, const Options& options) {
  Judgement j(results, options);
  collect_series(j);
  find_slow_rails(j);
  auto asked = digest_retests(j);
  const auto add = [&](std::vector<Retest> more) {
    std::move(more.begin(), more.end(), std::back_inserter(asked));
  };
  add(population_retests(j));
  const NetworkRetests network = network_retests(j);
  std::vector<Retest> links;
  for (auto& r : reference_retests(j, network)) (r.rounds.empty() ? asked : links).push_back(std::move(r));
  asked = joined(std::move(asked));
  add(network.asked);
  add(collective_retests(j));
  add(in_step_retests(j));
  add(bisection_retests(j));
  // The network's own schedules go first; what they measure of a link counts for its bounds, too.
  for (auto& r : links) {
    const bool waits = std::any_of(asked.begin(), asked.end(),
                                   [&](const Retest& o) { return o.suite == r.suite && o.name == r.name; });
    if (!waits) asked.push_back(std::move(r));
  }
  return asked;
}

}  // namespace assay::verdict
