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
std::map<std::int32_t, double> rates_by_node(const Snapshot& run, const SnapshotSeries& s) {
  std::map<std::int32_t, std::vector<double>> rates;
  for (std::size_t i = 0; i < s.log_rate.size(); ++i)
    rates[run.part(s.rows->part[i]).node].push_back(static_cast<double>(s.log_rate[i]));
  std::map<std::int32_t, double> medians;
  for (const auto& [node, of] : rates) medians[node] = median(of);
  return medians;
}

double median_of_nodes(const std::map<std::int32_t, double>& rates) {
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
           (ranks.wait       ? "; others used the cores of its ranks"
            : ranks.node < 0 ? "; which node is at fault it does not tell"
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
        rates[{s.full(), s.case_key}][static_cast<std::int64_t>(s.log_rate.size())].push_back(
            median_of_nodes(rates_by_node(run, s)));
  std::vector<BaselineTotal> totals;
  for (const auto& [key, by_ranks] : rates)
    for (const auto& [ranks, of] : by_ranks)
      totals.push_back({key.first, key.second, median(of), of.size() < runs_with_spread ? 0 : mad_sigma(of),
                        ranks, static_cast<std::int64_t>(of.size())});
  return totals;
}

void judge_baseline_totals(Judgement& j, const Snapshot& now) {
  const Baseline& baseline = *j.options.baseline;
  std::vector<std::string> absent;
  for (const auto& s : now.series) {
    if (!s.shared || s.log_rate.empty()) continue;
    const auto t =
        std::find_if(baseline.totals.begin(), baseline.totals.end(), [&](const BaselineTotal& known) {
          return known.metric == s.full() && known.case_key == s.case_key &&
                 known.ranks == static_cast<std::int64_t>(s.log_rate.size());
        });
    if (t == baseline.totals.end()) {
      absent.push_back(s.full());
      continue;
    }
    auto& series = j.series[s.origin];
    for (auto& row : series.rows) row.reference = std::max<std::uint8_t>(row.reference, Reference::baseline);
    const double threshold = threshold_of(j, series, *t);
    const auto rates = rates_by_node(now, s);
    const auto hold = [&](double rate, std::int32_t node) {
      if (t->log_rate - rate <= threshold) return;
      // A neighbour on the machine slows some samples, a fault all of them.
      const Ranks ranks(j, series, node);
      if (t->log_rate - ranks.best > threshold) tell_slow(j, s, *t, rate, ranks);
    };
    if (series.judging.shared_by != results::SharedBy::node)
      hold(median_of_nodes(rates), -1);
    else
      for (const auto& [part, rate] : rates) hold(rate, now.part(part).entities.front());
  }
  if (absent.empty()) return;
  const bool only = std::all_of(now.series.begin(), now.series.end(), [](const auto& s) { return s.shared; });
  if (only && absent.size() == now.series.size())
    j.gap("baseline " + baseline.name + ": has no metric of this run");
  auto f = j.about(-1, "INFO", "fact", "mismatch");
  f.reference_kind = "baseline";
  f.text = "baseline " + baseline.name + ": no collective of as many ranks for " + first_of(absent);
  j.add(std::move(f), {});
}

}  // namespace assay::verdict
