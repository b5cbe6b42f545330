// SPDX-License-Identifier: Apache-2.0
// Collectives have one value for all their ranks, or one for the ranks of each node: the same operation of
// the same ranks is held against its own past.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.hpp"
#include "base/units.hpp"
#include "measure/robust.hpp"
#include "measure/statistics.hpp"
#include "verdict/collectives.hpp"
#include "verdict/constants.hpp"
#include "verdict/history_matrix.hpp"
#include "verdict/judgement.hpp"
#include "verdict/network_constants.hpp"
#include "verdict/pack.hpp"
#include "verdict/peer_findings.hpp"
#include "verdict/population.hpp"

namespace assay::verdict {
namespace {

/// Ranks that share a value, by the identities of their parts, and what each of them measured.
struct SharedValue {
  std::int32_t node = -1;  ///< row of Snapshot::parts; -1 of all ranks
  std::vector<std::int32_t> ranks;
  std::vector<double> rates;
};

/// By the identity of the node whose ranks share a value; -1: all ranks.
std::map<std::int32_t, SharedValue> shared_values(const Snapshot& run, const std::vector<std::int32_t>& ids,
                                                  const SnapshotSeries& s) {
  const auto id_of = [&](std::int32_t row) { return ids[static_cast<std::size_t>(row)]; };
  std::map<std::int32_t, SharedValue> values;
  for (std::size_t i = 0; i < s.log_rate.size(); ++i) {
    const std::int32_t row = s.rows->part[i], node = s.by_node ? run.part(row).node : -1;
    SharedValue& of = values[node < 0 ? -1 : id_of(node)];
    of.node = node;
    of.ranks.push_back(id_of(row));
    of.rates.push_back(static_cast<double>(s.log_rate[i]));
  }
  for (auto& [id, of] : values) std::sort(of.ranks.begin(), of.ranks.end());
  return values;
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

std::vector<HistoryTotal> totals_of(const std::vector<past::Run>& runs, const Snapshot& now,
                                    const std::vector<std::int32_t>& ids) {
  std::vector<HistoryTotal> totals;
  for (const auto& s : now.series) {
    if (!s.shared) continue;
    const auto values = shared_values(now, ids, s);
    std::map<std::int32_t, std::pair<HistoryTotal, std::vector<double>>> drafts;  // with the steady rates
    const std::string key = past::key_of(s);
    for (const auto& run : runs) {
      const auto series = run.series.find(key);
      if (series == run.series.end()) continue;
      for (const auto& [node, before] : shared_values(*run.snapshot, run.ids, *series->second)) {
        const auto of = values.find(node);
        if (of == values.end() || of->second.ranks != before.ranks) continue;
        auto& [total, steady] = drafts[node];
        add_run(total, steady, median(before.rates), run.snapshot->source.started);
      }
    }
    for (const auto& [node, of] : values) {
      const auto draft = drafts.find(node);
      if (draft == drafts.end()) continue;
      auto& [t, steady] = draft->second;
      t.metric = s.full();
      t.case_key = s.case_key;
      t.node = of.node;
      t.runs = static_cast<std::int64_t>(steady.size());
      t.base = median(steady);
      if (steady.size() >= history_total_least) t.threshold = threshold_of(steady);
      totals.push_back(std::move(t));
    }
  }
  return totals;
}

results::Finding drift_finding(const Judgement& j, const Snapshot& now, const SnapshotSeries& s,
                               double deficit, const std::string& since, std::int32_t node) {
  auto f = j.about(node, "WARN", "abnormality", "drift");
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

namespace {

/// What ranks reached, by the row of Snapshot::parts of their node; -1: all ranks.
std::map<std::int32_t, double> rates_now(const Snapshot& now, const SnapshotSeries& s) {
  std::map<std::int32_t, std::vector<double>> rates;
  for (std::size_t i = 0; i < s.log_rate.size(); ++i) {
    rates[-1].push_back(static_cast<double>(s.log_rate[i]));
    if (s.by_node) rates[now.part(s.rows->part[i]).node].push_back(static_cast<double>(s.log_rate[i]));
  }
  std::map<std::int32_t, double> medians;
  for (const auto& [node, of] : rates) medians[node] = median(of);
  return medians;
}

/// The best samples of the ranks of a node: a neighbour on the machine slows some samples, a fault all of
/// them.
double best_of(const Series& s, const std::vector<const SeriesRow*>& rows) {
  std::vector<double> best;
  for (const SeriesRow* row : rows)
    best.push_back(log_rate(s.better == results::Better::higher ? row->highest : row->lowest, s.better));
  std::erase_if(best, [](double rate) { return std::isnan(rate); });
  return median(best);
}

/// Of ranks that share cores the scheduler decides the rate.
double threshold_on(const Judgement& j, const std::vector<const SeriesRow*>& rows, double threshold) {
  const bool shared = std::any_of(rows.begin(), rows.end(),
                                  [&](const SeriesRow* row) { return j.entities.shares_cores(row->entity); });
  return shared ? std::max(threshold, log_deficit(constants::peers_shared_most)) : threshold;
}

/// One sample may have been held up by anything. `node` -1: all ranks.
bool has_enough_samples(const Judgement& j, const Series& s, std::int32_t node) {
  return !s.per_sample || std::ranges::any_of(s.rows, [&](const SeriesRow& row) {
    return (node < 0 || j.entities.node(row.entity) == node) && row.n >= constants::peers_small_samples;
  });
}

using RowsByNode = std::map<std::int32_t, std::vector<const SeriesRow*>>;

RowsByNode rows_by_node(const Judgement& j, const Series& s) {
  RowsByNode rows;
  for (const auto& row : s.rows) rows[j.entities.node(row.entity)].push_back(&row);
  return rows;
}

void judge_total(Judgement& j, const Snapshot& now, const SnapshotSeries& s, const HistoryTotal& t,
                 const RowsByNode& rows, double rate) {
  const Series& series = j.series[s.origin];
  const std::int32_t node = t.node < 0 ? -1 : now.part(t.node).entities.front();
  const double deficit = t.base - rate;
  if (!(deficit > t.threshold)) return;
  if (const auto own = rows.find(node); node >= 0 && own != rows.end()) {
    const double threshold = threshold_on(j, own->second, t.threshold);
    if (deficit <= threshold || t.base - best_of(series, own->second) <= threshold) return;
  }
  const bool wait = node >= 0 && waits_for_a_core(j, series, node),
             enough = has_enough_samples(j, series, node);
  auto f = drift_finding(j, now, s, deficit, t.since, node);
  if (wait || (node >= 0 && !enough)) f.severity = "INFO";
  f.value = value_of(rate, s.higher_is_better);
  f.reference = value_of(t.base, s.higher_is_better);
  f.controls = t.runs;
  f.text = f.name + ": " + s.full() + " " + format_quantity(*f.value, s.unit) + ", own history of " +
           count(t.runs, "run", "runs") + " " + format_quantity(*f.reference, s.unit) + ", deficit " +
           percent(*f.deficit) + ", since " + f.since +
           (wait       ? "; its ranks shared their cores"
            : node < 0 ? "; the node at fault is not known"
            : !enough  ? "; too few samples"
                       : ", not confirmed");
  j.add(std::move(f), node < 0 ? std::vector<std::int32_t>{} : std::vector{node},
        !wait && enough && deficit > log_deficit(constants::network_gross_deficit));
}

}  // namespace

HistoryHeld judge_totals(Judgement& j, const Snapshot& now, const History& history) {
  std::map<std::pair<std::string, std::string>, std::vector<const HistoryTotal*>> known;
  for (const auto& t : history.totals) known[{t.metric, t.case_key}].push_back(&t);
  HistoryHeld held;
  for (const auto& s : now.series) {
    const auto of = s.shared ? known.find({s.full(), s.case_key}) : known.end();
    if (of == known.end()) continue;
    const auto rates = rates_now(now, s);
    const auto rows = s.by_node ? rows_by_node(j, j.series[s.origin]) : RowsByNode{};
    bool some = false;
    for (const HistoryTotal* t : of->second) {
      const auto rate = rates.find(t->node);
      if (rate == rates.end() || !(t->threshold > 0)) continue;
      some = true;
      judge_total(j, now, s, *t, rows, rate->second);
    }
    ++(some ? held.known : held.unknown);
  }
  return held;
}

Json node_totals_json(const std::vector<HistoryTotal>& totals) {
  std::map<std::pair<std::string, std::string>, std::vector<const HistoryTotal*>> metrics;
  for (const auto& t : totals)
    if (t.node >= 0) metrics[{t.metric, t.case_key}].push_back(&t);
  Json out = Json::array();
  for (const auto& [key, of] : metrics) {
    std::vector<std::int32_t> node;
    std::vector<std::int64_t> runs;
    std::vector<double> base, threshold;
    Json since = Json::object();  // of few of them
    for (const HistoryTotal* t : of) {
      node.push_back(t->node);
      runs.push_back(t->runs);
      base.push_back(t->base);
      threshold.push_back(t->threshold);
      if (!t->since.empty()) since[std::to_string(t->node)] = t->since;
    }
    out.push_back(Json{{"metric", key.first},
                       {"case_key", key.second},
                       {"node", to_base64(node)},
                       {"base", to_base64(base)},
                       {"threshold", to_base64(threshold)},
                       {"runs", to_base64(runs)},
                       {"since", std::move(since)}});
  }
  return out;
}

void add_node_totals(std::vector<HistoryTotal>& totals, const Json& json) {
  for (const auto& metric : json) {
    const auto node = from_base64_as<std::int32_t>(metric.at("node"));
    const auto runs = from_base64_as<std::int64_t>(metric.at("runs"));
    const auto base = from_base64_as<double>(metric.at("base"));
    const auto threshold = from_base64_as<double>(metric.at("threshold"));
    const auto& since = metric.at("since");
    const std::size_t n = node.size();
    if (runs.size() != n || base.size() != n || threshold.size() != n)
      throw Error(ErrorKind::data, "/verdict/inputs: the history in it is damaged");
    for (std::size_t i = 0; i < n; ++i)
      totals.push_back({metric.at("metric"), metric.at("case_key"), base[i], threshold[i], runs[i],
                        since.value(std::to_string(node[i]), ""), node[i]});
  }
}

}  // namespace assay::verdict
