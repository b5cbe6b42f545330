// SPDX-License-Identifier: Apache-2.0
#include "verdict/network_rows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "measure/statistics.hpp"
#include "verdict/judgement.hpp"
#include "verdict/network_constants.hpp"

namespace assay::verdict::network {
namespace {

/// Rows of a round from which its own median is taken out; under it one slow part would move it.
constexpr std::size_t least_round_rows = 16;
/// Rows of pairs below one switch, or across switches, that are compared among themselves.
constexpr std::size_t least_class_rows = 6;
/// The quantile that stands for the rows of a round across switches: where a third of the switches is slow,
/// and the round pairs none of these with one another, most rows are slow.
constexpr double across_quantile = 0.9;
/// Stands for the rows of a round, of so many at least, where more than this share of all pairs is slow.
constexpr double upper_quartile = 0.75, slow_pairs_share = 0.4;
constexpr std::size_t least_rows_beside_slow = 64;

std::int32_t row_at(const std::vector<std::int32_t>& values, std::size_t i) {
  return i < values.size() ? values[i] : -1;
}

bool crosses_switches(int cls) { return cls % 3 == 2; }
int stratum_of(int cls) { return cls / 3; }

}  // namespace

int class_of(std::int32_t stratum, int place_a, int place_b) {
  const int tier = place_a < 0 || place_b < 0 ? 0 : place_a == place_b ? 1 : 2;
  return stratum * 3 + tier;
}

double centre(std::vector<Raw>& raw, bool few_switches) {
  std::map<int, std::vector<double>> by_class;
  std::map<std::tuple<int, int, int>, std::vector<double>> by_round;
  for (const auto& r : raw) {
    by_class[r.cls].push_back(r.m.y);
    by_round[{r.cls, r.pass, r.m.round}].push_back(r.m.y);
  }
  std::set<int> by_rounds;  // classes
  for (const auto& [key, values] : by_round) {
    const int cls = std::get<0>(key);
    if (values.size() >= least_round_rows && !(few_switches && crosses_switches(cls))) by_rounds.insert(cls);
  }
  // Where 30 % of the nodes are slow, half of the pairs are: the median of a round would be one or the other.
  std::set<int> half_slow;
  for (const auto& [cls, values] : by_class) {
    const double least = quantile(values, upper_quartile) - constants::network_fail;
    const auto slow = std::ranges::count_if(values, [&](double v) { return v < least; });
    if (static_cast<double>(slow) > slow_pairs_share * static_cast<double>(values.size()))
      half_slow.insert(cls);
  }
  const auto usual = [&](int cls, const std::vector<double>& values) {
    if (crosses_switches(cls)) return quantile(values, across_quantile);
    return half_slow.contains(cls) && values.size() >= least_rows_beside_slow
               ? quantile(values, upper_quartile)
               : median(values);
  };
  std::map<int, double> class_centre;
  // Of a few pairs below a switch two slow nodes slow most.
  for (const auto& [cls, values] : by_class)
    class_centre[cls] =
        by_rounds.contains(cls)
            ? usual(cls, values)
            : quantile(values, values.size() < least_round_rows ? across_quantile : upper_quartile);
  // A few slow pairs are no measure of themselves.
  for (const auto& [cls, values] : by_class) {
    if (values.size() >= least_class_rows) continue;
    std::size_t most = values.size();
    for (const auto& [other, beside] : by_class)
      if (stratum_of(other) == stratum_of(cls) && beside.size() > most) {
        most = beside.size();
        class_centre[cls] = class_centre[other];
      }
  }
  std::map<std::tuple<int, int, int>, double> round_centre;
  for (const auto& [key, values] : by_round) {
    const int cls = std::get<0>(key);
    const bool enough = by_rounds.contains(cls) && values.size() >= least_round_rows;
    round_centre[key] = enough ? usual(cls, values) : class_centre[cls];
  }
  std::vector<double> taken;
  for (auto& r : raw) {
    const double m = round_centre[{r.cls, r.pass, r.m.round}];
    r.m.y -= m;
    r.m.best -= m;
    taken.push_back(m);
  }
  return median(taken);
}

double loss_across(const std::vector<Raw>& raw) {
  std::map<int, std::vector<double>> below;  // by stratum
  std::map<int, std::map<std::pair<int, int>, std::vector<double>>> across;
  std::map<int, std::size_t> links;
  for (const auto& r : raw) {
    const int stratum = stratum_of(r.cls);
    if (crosses_switches(r.cls)) {
      across[stratum][r.places].push_back(r.m.y);
      ++links[stratum];
    } else if (r.places.first >= 0 && r.places.second >= 0) {
      below[stratum].push_back(r.m.y);
    }
  }
  double loss = 0;
  std::size_t most = least_class_rows - 1;
  for (const auto& [stratum, paths] : across) {
    const auto beside = below.find(stratum);
    if (links.at(stratum) <= most || beside == below.end() || beside->second.size() < least_class_rows)
      continue;
    most = links.at(stratum);
    double best = -std::numeric_limits<double>::infinity();
    for (const auto& [path, rates] : paths) best = std::max(best, median(rates));
    loss = median(beside->second) - best;
  }
  return loss < constants::network_warn ? 0 : loss;
}

std::vector<Measured> measured(const results::CaseData& c, const std::string& metric,
                               results::Better better) {
  std::vector<Measured> out;
  const auto* m = c.find(metric);
  if (m == nullptr || !(m->values.size() >= c.entities() * (m->per_sample ? c.samples() : 1))) return out;
  const auto* round = c.find("round");
  const std::size_t width = m->per_sample ? c.samples() : 1;
  if (round != nullptr && round->values.size() < c.entities() * (round->per_sample ? c.samples() : 1))
    round = nullptr;
  const auto all = m->values.held();
  const auto rounds = (round != nullptr ? round : m)->values.held();
  const double sign = better == results::Better::lower ? -1.0 : 1.0;
  const auto round_at = [&](std::size_t row, std::size_t sample) {
    if (round == nullptr) return 0;
    const double number = rounds[round->per_sample ? row * c.samples() + sample : row];
    return std::abs(number) < 1e9 ? static_cast<int>(number) : 0;
  };
  // Without a usual value impossible ones are left out.
  const bool rated = is_rate_or_time(m->unit);
  const auto possible = [&](double value) { return value > 0 && std::isfinite(value); };
  double dead = results::not_taken;
  if (rated && std::any_of(all.begin(), all.end(),
                           [&](double v) { return !std::isnan(v) && !possible(bounded(v)); })) {
    std::vector<double> usual;
    std::copy_if(all.begin(), all.end(), std::back_inserter(usual),
                 [&](double v) { return possible(bounded(v)); });
    if (!usual.empty()) dead = dead_link_value(median(usual), better);
  }
  std::vector<std::pair<int, double>> taken;
  std::vector<double> values;
  for (std::size_t r = 0; r < c.entities(); ++r) {
    taken.clear();
    const auto count =
        r < c.count.size() && m->per_sample ? static_cast<std::size_t>(std::max(0, c.count[r])) : width;
    for (std::size_t s = 0; s < std::min(count, width); ++s) {
      const double measured_value = bounded(all[r * width + s]);
      if (std::isnan(measured_value)) continue;
      const double value = possible(measured_value) ? measured_value : dead;
      if (value > 0) taken.emplace_back(round_at(r, s), sign * std::log(value));
    }
    const auto earlier = [](const auto& a, const auto& b) { return a.first < b.first; };
    std::stable_sort(taken.begin(), taken.end(), earlier);
    for (std::size_t i = 0; i < taken.size();) {
      values.clear();
      const int number = taken[i].first;
      for (; i < taken.size() && taken[i].first == number; ++i) values.push_back(taken[i].second);
      out.push_back({c.entity[r], row_at(c.source, r), row_at(c.destination, r), number, median(values),
                     *std::max_element(values.begin(), values.end()),
                     static_cast<std::int32_t>(values.size())});
    }
  }
  return out;
}

}  // namespace assay::verdict::network
