// SPDX-License-Identifier: Apache-2.0
// Collectives have one value for all their ranks: the same operation of the same nodes is held against its
// own past.
#include <algorithm>
#include <cmath>
#include <set>

#include "base/units.hpp"
#include "measure/robust.hpp"
#include "measure/statistics.hpp"
#include "verdict/constants.hpp"
#include "verdict/history_matrix.hpp"
#include "verdict/judgement.hpp"
#include "verdict/network_constants.hpp"
#include "verdict/peer_findings.hpp"
#include "verdict/population.hpp"

namespace assay::verdict {
namespace {

double median_rate(const SnapshotSeries& s) {
  return median(std::vector<double>(s.log_rate.begin(), s.log_rate.end()));
}

std::set<std::string> parts_in(const Snapshot& run, const SnapshotSeries& s) {
  std::set<std::string> parts;
  for (const auto row : s.rows->part) parts.insert(run.part(row).kind + '\n' + run.part(row).id);
  return parts;
}

double threshold_of(std::span<const double> steady) {
  constexpr double deviations = 5;
  return std::max(log_deficit(constants::peers_small_deficit), deviations * mad_sigma(steady));
}

/// A run that lost speed is no level to get used to.
void add_run(HistoryTotal& t, std::vector<double>& steady, double rate, const std::string& started) {
  if (steady.size() >= history_total_least && median(steady) - rate > threshold_of(steady)) {
    if (t.since.empty()) t.since = started;
    return;
  }
  t.since.clear();
  steady.push_back(rate);
}

}  // namespace

std::vector<HistoryTotal> totals_of(const std::vector<past::Run>& runs, const Snapshot& now) {
  std::vector<HistoryTotal> totals;
  for (const auto& s : now.series) {
    if (!s.shared) continue;
    HistoryTotal t;
    t.metric = s.full();
    t.case_key = s.case_key;
    std::vector<double> steady;
    const auto parts = parts_in(now, s);
    const std::string key = past::key_of(s);
    for (const auto& run : runs) {
      const auto before = run.series.find(key);
      if (before != run.series.end() && parts_in(*run.snapshot, *before->second) == parts)
        add_run(t, steady, median_rate(*before->second), run.snapshot->source.started);
    }
    if (steady.empty()) continue;
    t.runs = static_cast<std::int64_t>(steady.size());
    t.base = median(steady);
    if (steady.size() >= history_total_least) t.threshold = threshold_of(steady);
    totals.push_back(std::move(t));
  }
  return totals;
}

results::Finding cluster_drift(const Judgement& j, const Snapshot& now, const SnapshotSeries& s,
                               double deficit, const std::string& since) {
  auto f = j.about(-1, "WARN", "abnormality", "drift");
  f.suite = s.suite;
  f.metric = s.full();
  f.unit = s.unit;
  f.better = s.higher_is_better ? "higher" : "lower";
  f.reference_kind = "history";
  f.deficit = fraction(deficit);
  f.action = "TRIAGE";
  f.since = since.empty() ? now.source.started : since;
  return f;
}

HistoryHeld judge_totals(Judgement& j, const Snapshot& now, const History& history) {
  HistoryHeld held;
  for (const auto& s : now.series) {
    const auto t = std::find_if(history.totals.begin(), history.totals.end(), [&](const HistoryTotal& known) {
      return s.shared && known.metric == s.full() && known.case_key == s.case_key;
    });
    if (t == history.totals.end()) continue;
    ++(t->threshold > 0 ? held.known : held.unknown);
    const double deficit = t->base - median_rate(s);
    if (!(t->threshold > 0) || deficit <= t->threshold) continue;
    auto f = cluster_drift(j, now, s, deficit, t->since);
    f.value = value_of(t->base - deficit, s.higher_is_better);
    f.reference = value_of(t->base, s.higher_is_better);
    f.controls = t->runs;
    f.text = "cluster: " + s.full() + " " + format_quantity(*f.value, s.unit) + ", own history of " +
             count(t->runs, "run", "runs") + " " + format_quantity(*f.reference, s.unit) + ", deficit " +
             percent(*f.deficit) + ", since " + f.since + "; the node at fault is not known";
    j.add(std::move(f), {}, deficit > log_deficit(constants::network_gross_deficit));
  }
  return held;
}

}  // namespace assay::verdict
