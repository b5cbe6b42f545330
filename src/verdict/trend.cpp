// SPDX-License-Identifier: Apache-2.0
#include "verdict/trend.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

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

struct Gathered {
  TrendMetric trend;
  std::vector<Value> fleet;
  std::map<std::string, std::pair<std::string, std::vector<Value>>>
      parts;  ///< by kind and id: name, values without the fleet's
};

void add_run(Gathered& g, const Snapshot& run, const SnapshotSeries& s, std::size_t index) {
  std::vector<double> rates(s.log_rate.begin(), s.log_rate.end());
  if (rates.empty()) return;
  const double centre = median(rates), slow = quantile(rates, 0.05), fast = quantile(rates, 0.95);
  const double low = value_of(slow, s.higher_is_better), high = value_of(fast, s.higher_is_better);
  g.trend.points.push_back(
      {index, std::min(low, high), value_of(centre, s.higher_is_better), std::max(low, high), rates.size()});
  g.fleet.push_back({index, centre});
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const Part& part = run.part(s.rows->part[i]);
    auto& own = g.parts[part.kind + '\n' + part.id];
    own.first = part.name;
    if (own.second.empty() || own.second.back().run != index)
      own.second.push_back({index, rates[i] - centre});
  }
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
    const auto tell = [&](const std::string& name, const std::vector<Value>& values) {
      if (auto step = step_of(values)) {
        step->name = name;
        g.trend.changes.push_back(*step);
      }
    };
    for (const auto& [key, part] : g.parts)
      if (g.parts.size() > 1) tell(part.first, part.second);
    std::stable_sort(g.trend.changes.begin(), g.trend.changes.end(),
                     [](const auto& a, const auto& b) { return std::abs(a.change) > std::abs(b.change); });
    if (g.trend.changes.size() > changes_told) g.trend.changes.resize(changes_told);
    tell("fleet", g.fleet);
    out.push_back(std::move(g.trend));
  }
  return out;
}

}  // namespace assay::verdict
