// SPDX-License-Identifier: Apache-2.0
// Collectives have one value for all their ranks, or one for the ranks of each node: the same operation among
// as many ranks is held against that of the baseline.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/units.hpp"
#include "measure/statistics.hpp"
#include "verdict/baseline.hpp"
#include "verdict/collectives.hpp"
#include "verdict/constants.hpp"
#include "verdict/judgement.hpp"
#include "verdict/network_constants.hpp"
#include "verdict/peer_findings.hpp"
#include "verdict/population.hpp"
#include "verdict/reference_scores.hpp"

namespace assay::verdict {
namespace {

constexpr std::size_t runs_with_spread = 3;

/// Median log rate of the ranks of each node.
using NodeRates = std::map<std::int32_t, double>;

/// By the number of ranks that share a value: those of a node, or all.
std::map<std::int64_t, NodeRates> rates_by_ranks(const Snapshot& run, const SnapshotSeries& s) {
  std::map<std::int32_t, std::vector<double>> rates;
  for (std::size_t i = 0; i < s.log_rate.size(); ++i)
    rates[run.part(s.rows->part[i]).node].push_back(static_cast<double>(s.log_rate[i]));
  std::map<std::int64_t, NodeRates> medians;
  for (const auto& [node, of] : rates)
    medians[static_cast<std::int64_t>(s.by_node ? of.size() : s.log_rate.size())][node] = median(of);
  return medians;
}

double median_of_nodes(const NodeRates& rates) {
  std::vector<double> all;
  for (const auto& [node, rate] : rates) all.push_back(rate);
  return median(all);
}

/// Few runs do not tell how much a healthy collective differs from run to run.
double threshold_of(const Judgement& j, const Series& s, const BaselineTotal& t) {
  constexpr double deviations = 5;
  double threshold = log_deficit(constants::bisection_share);
  if (t.runs >= static_cast<std::int64_t>(runs_with_spread))
    threshold = std::max(log_deficit(constants::peers_small_deficit), deviations * t.spread);
  const bool shared_cores = std::any_of(s.rows.begin(), s.rows.end(), [&](const SeriesRow& row) {
    return j.entities.shares_cores(row.entity);
  });
  return shared_cores ? std::max(threshold, log_deficit(constants::peers_shared_most)) : threshold;
}

/// Ranks of one operation: all, or those of `node`.
struct Ranks {
  Ranks(const Judgement& j, const Series& s, std::int32_t of) : node(of), wait(waits_for_a_core(j, s, of)) {
    std::vector<double> all;
    for (const auto& row : s.rows) {
      if (node >= 0 && j.entities.node(row.entity) != node) continue;
      samples = std::max<std::int64_t>(samples, row.n);
      all.push_back(log_rate(s.better == results::Better::higher ? row.highest : row.lowest, s.better));
    }
    std::erase_if(all, [](double rate) { return std::isnan(rate); });
    if (!all.empty()) best = median(all);
  }
  std::int32_t node;
  bool wait;        ///< for one whose core others used
  double best = 0;  ///< log rate of the best samples
  std::int64_t samples = 0;
};

void tell_slow(Judgement& j, const SnapshotSeries& s, const BaselineTotal& t, double rate,
               const Ranks& ranks) {
  const double deficit = t.log_rate - rate;
  auto f = j.about(j.series[s.origin], ranks.node, ranks.wait ? "INFO" : "WARN", "magnitude", "slow");
  f.value = value_of(rate, s.higher_is_better);
  f.reference = value_of(t.log_rate, s.higher_is_better);
  f.reference_kind = "baseline";
  f.deficit = fraction(deficit);
  f.samples = ranks.samples;
  f.controls = t.runs;
  f.action = "TRIAGE";
  f.text = f.name + ": " + s.full() + " " + format_quantity(*f.value, s.unit) + ", baseline of " +
           count(t.runs, "run", "runs") + " " + format_quantity(*f.reference, s.unit) + ", deficit " +
           percent(*f.deficit) +
           (ranks.wait       ? "; its ranks shared their cores"
            : ranks.node < 0 ? "; the node at fault is not known"
                             : ", not confirmed");
  const bool enough = ranks.samples >= static_cast<std::int64_t>(constants::peers_small_samples);
  j.add(std::move(f), ranks.node < 0 ? std::vector<std::int32_t>{} : std::vector{ranks.node},
        !ranks.wait && enough && deficit > log_deficit(constants::network_gross_deficit));
}

}  // namespace

std::vector<BaselineTotal> baseline_totals_of(const std::vector<Snapshot>& runs) {
  std::map<std::pair<std::string, std::string>, std::map<std::int64_t, std::vector<double>>> rates;
  for (const auto& run : runs)
    for (const auto& s : run.series)
      if (s.shared && !s.log_rate.empty())
        for (const auto& [ranks, of] : rates_by_ranks(run, s))
          rates[{s.full(), s.case_key}][ranks].push_back(median_of_nodes(of));
  std::vector<BaselineTotal> totals;
  for (const auto& [key, by_ranks] : rates)
    for (const auto& [ranks, of] : by_ranks)
      totals.push_back({key.first, key.second, median(of), of.size() < runs_with_spread ? 0 : mad_sigma(of),
                        ranks, static_cast<std::int64_t>(of.size())});
  return totals;
}

namespace {

const BaselineTotal* total_of(const Baseline& baseline, const SnapshotSeries& s, std::int64_t ranks) {
  const auto t = std::ranges::find_if(baseline.totals, [&](const BaselineTotal& known) {
    return known.metric == s.full() && known.case_key == s.case_key && known.ranks == ranks;
  });
  return t == baseline.totals.end() ? nullptr : &*t;
}

/// The ranks of these nodes against as many of the baseline.
void hold(Judgement& j, const Snapshot& now, const SnapshotSeries& s, const BaselineTotal& t,
          const NodeRates& rates) {
  auto& series = j.series[s.origin];
  std::set<std::int32_t> nodes;
  for (const auto& [part, rate] : rates) nodes.insert(now.part(part).entities.front());
  for (auto& row : series.rows)
    if (!s.by_node || nodes.contains(j.entities.node(row.entity)))
      row.reference = std::max<std::uint8_t>(row.reference, Reference::baseline);
  const double threshold = threshold_of(j, series, t);
  const auto compare = [&](double rate, std::int32_t node) {
    if (t.log_rate - rate <= threshold) return;
    // A neighbour on the machine slows some samples, a fault all of them.
    const Ranks ranks(j, series, node);
    if (t.log_rate - ranks.best > threshold) tell_slow(j, s, t, rate, ranks);
  };
  if (!s.by_node) return compare(median_of_nodes(rates), -1);
  for (const auto& [part, rate] : rates) compare(rate, now.part(part).entities.front());
}

}  // namespace

void judge_baseline_totals(Judgement& j, const Snapshot& now) {
  const Baseline& baseline = *j.options.baseline;
  std::vector<std::string> absent;
  std::size_t unheld = 0;
  for (const auto& s : now.series) {
    if (!s.shared || s.log_rate.empty()) continue;
    bool some = false, all = true;
    for (const auto& [ranks, rates] : rates_by_ranks(now, s)) {
      const auto* t = total_of(baseline, s, ranks);
      if (t == nullptr) {
        all = false;
        continue;
      }
      some = true;
      hold(j, now, s, *t, rates);
    }
    if (!all) absent.push_back(s.full());
    unheld += some ? 0 : 1;
  }
  if (absent.empty()) return;
  const bool only = std::all_of(now.series.begin(), now.series.end(), [](const auto& s) { return s.shared; });
  if (only && unheld == now.series.size()) j.gap("baseline " + baseline.name + ": has no metric of this run");
  auto f = j.about(-1, "INFO", "fact", "mismatch");
  f.reference_kind = "baseline";
  f.text = "baseline " + baseline.name + ": no collective of as many ranks for " + first_of(absent);
  j.add(std::move(f), {});
}

}  // namespace assay::verdict
