// SPDX-License-Identifier: Apache-2.0
// Ranks that work in step. A collective and a training step begin for all ranks at once, so sample s of one
// rank stands beside sample s of every other, and what disturbs the machine disturbs all of them. A rank that
// takes much longer than the others, nearly every time, is slow itself: those who wait for a late one all
// take longer together. And a rank that comes late, again and again, was delayed by its host: after a barrier
// everyone is on time.
#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>
#include <set>

#include "base/units.hpp"
#include "measure/statistics.hpp"
#include "verdict/collectives.hpp"
#include "verdict/constants.hpp"
#include "verdict/retest/candidates.hpp"

namespace assay::verdict {
namespace {

using results::CaseData;
using results::Metric;

/// The time of its own that every rank reports for each sample: the whole operation, or the computing part of
/// a step.
const Metric* own_time(const CaseData& c) {
  if (c.kind != "device" || c.find("group") != nullptr) return nullptr;  // random groups: collectives.cpp
  for (const auto& m : c.metrics)
    if (m.per_sample && m.unit == "s" && results::judging_of(c, m).in_step) return &m;
  return nullptr;
}

bool completed(const CaseData& c) {
  return c.state == results::CaseState::pass || c.state == results::CaseState::fail;
}

/// Rows of a case that work together: those of a node where the case runs in every node by itself, else all.
std::vector<std::vector<std::size_t>> teams_of(const Judgement& j, const CaseData& c, const Metric& m) {
  const bool by_node = results::judging_of(c, m).shared_by == results::SharedBy::node;
  std::map<std::int32_t, std::vector<std::size_t>> teams;
  for (std::size_t r = 0; r < c.entities(); ++r)
    teams[by_node ? j.entities.node(c.entity[r]) : 0].push_back(r);
  std::vector<std::vector<std::size_t>> large;
  for (auto& [node, team] : teams)
    if (team.size() >= constants::in_step_ranks) large.push_back(std::move(team));
  return large;
}

/// Values of a team in one sample, nothing when one of them was not taken.
std::vector<double> together(const CaseData& c, const results::Held<double>& all,
                             const std::vector<std::size_t>& team, std::size_t sample) {
  std::vector<double> values;
  for (const auto r : team) {
    const std::size_t i = r * c.samples() + sample;
    const bool taken =
        i < all.size() && (r >= c.count.size() || static_cast<std::int32_t>(sample) < c.count[r]);
    if (!taken || !(all[i] >= 0)) return {};
    values.push_back(all[i]);
  }
  return values;
}

/// What the samples of a suite say about one rank.
struct Seen {
  std::size_t samples = 0, slow = 0, ranks = 0;
  std::set<std::string> cases;
  std::vector<double> deficits;  ///< of every sample
  double share() const { return samples == 0 ? 0 : static_cast<double>(slow) / static_cast<double>(samples); }
  /// Chance of being the slow one this often, were each as likely to be: over all who could be.
  double p() const {
    if (slow == 0 || ranks < 2) return 1;
    const boost::math::binomial_distribution<> chance(static_cast<double>(samples),
                                                      1.0 / static_cast<double>(ranks));
    return std::min(1.0, static_cast<double>(ranks) * boost::math::cdf(boost::math::complement(
                                                          chance, static_cast<double>(slow) - 1)));
  }
};
using Evidence = std::map<std::int32_t, Seen>;

void add_sample(const Judgement& j, const CaseData& c, const std::vector<std::size_t>& team,
                const std::vector<double>& values, Evidence& evidence) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  const std::size_t n = values.size(), rest = n - 1;
  for (std::size_t at = 0; at < n; ++at) {
    const std::size_t k = order[at];
    const auto other = [&](std::size_t i) { return values[order[i < at ? i : i + 1]]; };
    const double others = rest % 2 == 1 ? other(rest / 2) : 0.5 * (other(rest / 2 - 1) + other(rest / 2));
    const double deficit = values[k] > 0 ? 1 - others / values[k] : 0;
    const auto row = c.entity[team[k]];
    auto& seen = evidence[row];
    ++seen.samples;
    seen.ranks = std::max(seen.ranks, n);
    seen.cases.insert(base_name(c.name));
    seen.deficits.push_back(deficit);
    const double least =
        j.entities.shares_cores(row) ? constants::peers_shared_deficit : constants::peers_small_deficit;
    seen.slow += deficit >= least ? 1 : 0;
  }
}

/// Of one suite: of the screening, or of what was measured again.
Evidence evidence_of(const Judgement& j, const std::string& suite, bool retest) {
  Evidence evidence;
  for (const auto& c : j.results.cases) {
    const auto* m =
        c.suite == suite && completed(c) && (retest_number(c.name) > 0) == retest ? own_time(c) : nullptr;
    if (m == nullptr) continue;
    const auto all = m->values.held();
    for (const auto& team : teams_of(j, c, *m))
      for (std::size_t s = 0; s < c.samples(); ++s)
        if (const auto values = together(c, all, team, s); !values.empty())
          add_sample(j, c, team, values, evidence);
  }
  return evidence;
}

bool nearly_always(const Seen& seen) {
  return seen.samples >= constants::in_step_screened && seen.share() >= constants::in_step_share;
}

/// Ranks that are nearly always slow while the others hardly ever are. Many of them are no fault of their
/// own.
std::vector<std::int32_t> slow_ranks(const Evidence& evidence) {
  std::vector<std::int32_t> slow;
  for (const auto& [row, seen] : evidence) {
    if (nearly_always(seen)) slow.push_back(row);
    if (!nearly_always(seen) && seen.share() > 1 - constants::in_step_share) return {};
  }
  return slow.size() > std::max<std::size_t>(1, evidence.size() / 8) ? std::vector<std::int32_t>{} : slow;
}

/// The case with the most samples: it decides soonest.
const Series* longest(const Judgement& j, const std::string& suite, std::int32_t row) {
  const Series* best = nullptr;
  std::int32_t most = 0;
  for (const auto& s : j.series) {
    if (s.suite != suite || s.first == nullptr) continue;
    const auto* m = own_time(*s.first);
    if (m == nullptr || m->name != s.metric) continue;
    for (const auto& r : s.rows)
      if (r.entity == row && r.n > most) {
        most = r.n;
        best = &s;
      }
  }
  return best;
}

std::string of_samples(const Seen& seen) {
  return std::to_string(seen.slow) + " of " + std::to_string(seen.samples);
}

void report(Judgement& j, const std::string& suite, std::int32_t row, const Seen& seen, const Seen* retest) {
  const Series* s = longest(j, suite, row);
  if (s == nullptr) return;
  const bool retested = retest != nullptr && retest->samples >= constants::in_step_samples;
  const bool confirmed = retested && nearly_always(*retest) && retest->p() <= constants::in_step_alpha;
  const Seen& shown = retested ? *retest : seen;
  const double deficit = median(shown.deficits);
  const bool smoke = j.results.info.level == "smoke" && deficit <= constants::coarse_deficit;
  const bool fault = confirmed && !smoke;
  // With peers enough (own times of training) their spread has told it, to a finer measure. A warning of
  // another metric tells no fault.
  const bool told = std::any_of(j.found.begin(), j.found.end(), [&](const Found& f) {
    return f.finding.suite == suite && f.finding.severity != "INFO" &&
           (!fault || f.finding.severity == "FAIL" || f.finding.metric == s->full()) &&
           std::find(f.rows.begin(), f.rows.end(), row) != f.rows.end();
  });
  if (told) return;
  // On shared cores a rank gets what the scheduler gives it: suspected, but not warned of before it was
  // measured again.
  const bool note = !confirmed && (retested || seen.samples < constants::in_step_samples ||
                                   seen.p() > constants::alpha_warn || j.entities.shares_cores(row));
  auto f = j.about(row,
                   fault  ? "FAIL"
                   : note ? "INFO"
                          : "WARN",
                   confirmed ? "magnitude" : "abnormality", "slow");
  f.suite = suite;
  f.metric = s->full();
  f.unit = s->unit;
  f.better = results::to_string(s->better);
  std::vector<double> others;
  for (const auto& r : s->rows) {
    if (r.entity == row) f.value = r.median;
    if (r.entity != row) others.push_back(r.median);
  }
  if (!others.empty()) f.reference = median(others);
  f.reference_kind = "peers";
  f.deficit = deficit;
  f.ci_low = quantile(shown.deficits, 0.025);
  f.ci_high = quantile(shown.deficits, 0.975);
  f.samples = static_cast<std::int64_t>(shown.samples);
  f.controls = static_cast<std::int64_t>(shown.ranks) - 1;
  f.confirm(confirmed ? "retest" : "");
  f.p_adjusted = shown.p();
  if (s->first != nullptr) f.since = s->first->started;
  f.action = confirmed ? "TRIAGE" : "MONITOR";
  f.evidence = s->path;
  char p[32];
  std::snprintf(p, sizeof p, "p = %.2g", shown.p());
  f.text = f.name + ": slower than the " + std::to_string(shown.ranks - 1) + " other ranks in " +
           of_samples(seen) + " samples of " + std::to_string(seen.cases.size()) +
           (seen.cases.size() == 1 ? " case" : " cases") + " of " + suite + ", by " + percent(deficit) +
           " (" + percent(*f.ci_low) + " to " + percent(*f.ci_high) + "), " +
           (confirmed  ? "confirmed in " + of_samples(*retest) + " retest samples"
            : retested ? "not in the retest (" + of_samples(*retest) + ")"
                       : "not confirmed") +
           ", n=" + std::to_string(shown.samples) + ", " + p +
           (confirmed ? "; next: remove it and test it alone" : "");
  j.add(std::move(f), {row});
}

/// Suites whose ranks work in step.
std::set<std::string> suites_in_step(const Judgement& j) {
  std::set<std::string> suites;
  for (const auto& c : j.results.cases)
    if (!suites.contains(c.suite) && own_time(c) != nullptr) suites.insert(c.suite);
  return suites;
}

void mark(Judgement& j) {
  for (auto& s : j.series) {
    if (s.first == nullptr) continue;
    const auto* m = own_time(*s.first);
    if (m == nullptr || m->name != s.metric || s.rows.size() < constants::in_step_ranks) continue;
    for (auto& row : s.rows) row.reference = std::max<std::uint8_t>(row.reference, Reference::peers);
  }
}

/// Late arrivals of one case: by rank, and all.
void judge_arrivals(Judgement& j, const CaseData& c, double alpha) {
  const auto* skew = c.find("arrival_skew");
  const auto* duration = c.find("duration");
  if (skew == nullptr || duration == nullptr || !skew->per_sample || !duration->per_sample ||
      c.find("group") != nullptr)
    return;
  const auto all_skews = skew->values.held(), all_durations = duration->values.held();
  for (const auto& team : teams_of(j, c, *duration)) {
    std::vector<double> skews, durations;
    for (std::size_t s = 0; s < c.samples(); ++s) {
      const auto came = together(c, all_skews, team, s), took = together(c, all_durations, team, s);
      if (came.empty() || took.empty()) continue;
      skews.insert(skews.end(), came.begin(), came.end());
      durations.insert(durations.end(), took.begin(), took.end());
    }
    if (skews.size() < team.size() * static_cast<std::size_t>(constants::dips_min_samples)) continue;
    // Later than is usual by far, and than the operation lasts: then it is what the others wait for.
    const double late = std::max(constants::late_arrival * median(skews), median(durations));
    Evidence evidence;
    std::size_t all = 0;
    for (std::size_t i = 0; i < skews.size(); ++i) {
      auto& seen = evidence[c.entity[team[i % team.size()]]];
      seen.ranks = team.size();
      if (!(skews[i] > late)) continue;
      seen.deficits.push_back(skews[i]);
      // What lasts for several operations is one event.
      const bool goes_on = i >= team.size() && skews[i - team.size()] > late;
      seen.slow += goes_on ? 0 : 1;
      all += goes_on ? 0 : 1;
    }
    for (auto& [row, seen] : evidence) {
      seen.samples = all;
      if (seen.slow < constants::late_least || seen.p() > alpha) continue;
      auto f = j.about(row, j.entities.shares_cores(row) ? "INFO" : "WARN", "abnormality", "intermittent");
      f.suite = c.suite;
      f.metric = c.path() + ":arrival_skew";
      f.unit = "s";
      f.better = "lower";
      f.value = median(seen.deficits);
      f.reference = median(skews);
      f.reference_kind = "peers";
      f.samples = static_cast<std::int64_t>(skews.size() / team.size());
      f.controls = static_cast<std::int64_t>(team.size()) - 1;
      f.p_adjusted = seen.p();
      f.since = c.started;
      f.action = "MONITOR";
      f.evidence = "/cases/" + c.path() + "/arrival_skew";
      f.text = f.name + ": came late " + std::to_string(seen.slow) + " times in " +
               std::to_string(*f.samples) + " operations of " + c.path() + ", by " +
               format_quantity(*f.value, "s") + " against the usual " + format_quantity(*f.reference, "s") +
               "; " + std::to_string(all - seen.slow) + " late arrivals of all others: its host stalled";
      j.add(std::move(f), {row});
    }
  }
}

}  // namespace

void judge_ranks_in_step(Judgement& j) {
  mark(j);
  bool any = false;
  for (const std::string& suite : suites_in_step(j)) {
    const auto evidence = evidence_of(j, suite, false);
    any = any || !evidence.empty();
    const auto slow = slow_ranks(evidence);
    if (slow.empty()) continue;
    const auto retest = evidence_of(j, suite, true);
    for (const auto row : slow)
      report(j, suite, row, evidence.at(row), retest.contains(row) ? &retest.at(row) : nullptr);
  }
  if (any) j.expected_false_fails += constants::in_step_alpha;
  std::vector<const CaseData*> isolated;
  for (const auto& c : j.results.cases)
    if (completed(c) && retest_number(c.name) == 0 && c.find("arrival_skew") != nullptr)
      isolated.push_back(&c);
  for (const auto* c : isolated)
    judge_arrivals(j, *c, constants::alpha_warn / static_cast<double>(isolated.size()));
}

std::vector<Retest> in_step_retests(const Judgement& j) {
  std::vector<Retest> asked;
  for (const std::string& suite : suites_in_step(j)) {
    const auto slow = slow_ranks(evidence_of(j, suite, false));
    const Series* s = slow.empty() ? nullptr : longest(j, suite, slow.front());
    if (s == nullptr) continue;
    // A slow machine takes few samples in its time: as long as they say the same and are too few, it goes on.
    const auto retest = evidence_of(j, suite, true);
    const auto decided = [&](std::int32_t row) {
      const auto at = retest.find(row);
      if (at == retest.end()) return false;
      const Seen& seen = at->second;
      return seen.share() < constants::in_step_share ||
             (seen.samples >= constants::in_step_samples && seen.p() <= constants::in_step_alpha);
    };
    Retest r = next_retest(j, s->suite, s->name, s->metric);
    if (r.number > constants::retest_most_cases || std::all_of(slow.begin(), slow.end(), decided)) continue;
    for (const auto& row : s->rows)
      (std::find(slow.begin(), slow.end(), row.entity) != slow.end() ? r.candidates : r.controls)
          .push_back(row.entity);
    asked.push_back(std::move(r));
  }
  return asked;
}

}  // namespace assay::verdict
