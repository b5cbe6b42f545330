// SPDX-License-Identifier: Apache-2.0
#include "verdict/trend.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>

#include "base/random.hpp"
#include "measure/statistics.hpp"
#include "verdict/constants.hpp"

namespace assay::verdict {
namespace {

constexpr std::size_t values_before = 3, values_after = 2, changes_told = 20;
static_assert(values_before + values_after == least_runs_of_change);
constexpr double step_sigmas = 6, least_sigma = 1e-3;

struct Value {
  std::size_t run;
  double log_rate;
};

/// The split of a line of values that explains most of it, if it is a step.
std::optional<TrendChange> step_of(const std::vector<Value>& values) {
  std::optional<TrendChange> best;
  double best_cost = INFINITY;
  for (std::size_t k = values_before; k + values_after <= values.size(); ++k) {
    std::vector<double> before, after, rest;
    for (std::size_t i = 0; i < values.size(); ++i) (i < k ? before : after).push_back(values[i].log_rate);
    const double a = median(before), b = median(after);
    double cost = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      rest.push_back(values[i].log_rate - (i < k ? a : b));
      cost += std::abs(rest.back());
    }
    if (cost >= best_cost) continue;
    best_cost = cost;
    best.reset();
    const double sigma = std::max(least_sigma, mad_sigma(rest));
    if (std::abs(b - a) < std::max(constants::delta_warn, step_sigmas * sigma)) continue;
    best = TrendChange{"", values[k].run, std::expm1(b - a), k, values.size() - k};
  }
  return best;
}

struct PartLine {
  std::string name;
  std::vector<Value> values;
};

struct Gathered {
  TrendMetric trend;
  std::map<std::string, PartLine> parts;    ///< by identity
  std::map<std::string, PartLine> senders;  ///< of links, which are drawn anew in each run: their nodes
};

/// Ranks that share a value with others are a part of their own: the same operation is one of the same ranks.
/// Groups are drawn at random.
std::vector<std::string> identities_of(const Snapshot& run, const SnapshotSeries& s) {
  std::vector<std::string> ids;
  std::map<std::int32_t, std::uint64_t> ranks;  // by node: all ranks that share its value, in any order
  const bool shared = s.shared && (s.by_node || s.stage != "groups");
  const auto node_of = [&](std::int32_t row) { return s.by_node ? run.part(row).node : -1; };
  for (const auto row : s.rows->part) {
    ids.push_back(run.part(row).kind + '\n' + run.part(row).id);
    if (shared) ranks[node_of(row)] += hash_text(ids.back());
  }
  for (std::size_t i = 0; shared && i < ids.size(); ++i)
    ids[i] += '\n' + std::to_string(ranks[node_of(s.rows->part[i])]);
  return ids;
}

void add_run(Gathered& g, const Snapshot& run, const SnapshotSeries& s, std::size_t index) {
  std::vector<double> rates(s.log_rate.begin(), s.log_rate.end());
  if (rates.empty()) return;
  const double centre = median(rates), slow = quantile(rates, 0.05), fast = quantile(rates, 0.95);
  const double low = value_of(slow, s.higher_is_better), high = value_of(fast, s.higher_is_better);
  g.trend.points.push_back(
      {index, std::min(low, high), value_of(centre, s.higher_is_better), std::max(low, high), rates.size()});
  const auto ids = identities_of(run, s);
  std::map<std::int32_t, std::vector<double>> sent;  // by node
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const Part& part = run.part(s.rows->part[i]);
    PartLine& own = g.parts[ids[i]];
    own.name = part.name;
    if (own.values.empty() || own.values.back().run != index) own.values.push_back({index, rates[i]});
    if (part.kind == "link") sent[part.node].push_back(rates[i]);
  }
  for (const auto& [node, of] : sent) g.senders[run.part(node).id].values.push_back({index, median(of)});
}

/// By run, what all parts together are above their own levels, with the levels that make both fit (Tukey
/// 1977: median polish). Parts of one run say nothing.
std::vector<double> fleet_of(const std::map<std::string, PartLine>& parts, std::size_t runs) {
  constexpr int most_rounds = 30;
  constexpr double small = 1e-4;
  std::vector<double> fleet(runs, 0.0);
  for (int round = 0; round < most_rounds; ++round) {
    std::vector<std::vector<double>> off(runs);
    for (const auto& [id, part] : parts) {
      if (part.values.size() < 2) continue;
      std::vector<double> own;
      for (const Value& v : part.values) own.push_back(v.log_rate - fleet[v.run]);
      const double level = median(own);
      for (const Value& v : part.values) off[v.run].push_back(v.log_rate - level);
    }
    double moved = 0;
    for (std::size_t r = 0; r < runs; ++r) {
      if (off[r].empty()) continue;
      const double now = median(off[r]);
      moved = std::max(moved, std::abs(now - fleet[r]));
      fleet[r] = now;
    }
    if (moved < small) break;
  }
  return fleet;
}

/// Steps of the parts less those of the fleet, the largest first, and the fleet's own.
void find_changes(Gathered& g, std::size_t runs) {
  auto& changes = g.trend.changes;
  const auto tell = [&](const std::string& name, const std::vector<Value>& values) {
    if (auto step = step_of(values)) {
      step->name = name;
      changes.push_back(*step);
    }
  };
  const auto fleet = fleet_of(g.senders.empty() ? g.parts : g.senders, runs);
  for (const auto& [id, part] : g.parts) {
    std::vector<Value> own = part.values;
    for (Value& v : own) v.log_rate -= fleet[v.run];
    if (g.parts.size() > 1) tell(part.name, own);
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const auto& a, const auto& b) { return std::abs(a.change) > std::abs(b.change); });
  if (changes.size() > changes_told) changes.resize(changes_told);
  std::vector<Value> all;
  for (const auto& point : g.trend.points) all.push_back({point.run, fleet[point.run]});
  tell("fleet", all);
}

}  // namespace

std::vector<TrendMetric> trend_of(const std::vector<Snapshot>& runs) {
  std::map<std::string, std::size_t> known;
  std::vector<Gathered> all;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    for (const auto& s : runs[r].series) {
      const auto [it, fresh] = known.try_emplace(s.full() + '\n' + s.case_key, all.size());
      if (fresh) {
        all.emplace_back();
        all.back().trend.metric = s.full();
        all.back().trend.case_key = s.case_key;
        all.back().trend.unit = s.unit;
      }
      Gathered& g = all[it->second];
      if (g.trend.points.empty() || g.trend.points.back().run != r) add_run(g, runs[r], s, r);
    }
  }
  std::vector<TrendMetric> out;
  for (Gathered& g : all) {
    if (g.trend.points.size() < 2) continue;
    find_changes(g, runs.size());
    out.push_back(std::move(g.trend));
  }
  return out;
}

}  // namespace assay::verdict
