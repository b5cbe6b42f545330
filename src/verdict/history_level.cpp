// SPDX-License-Identifier: Apache-2.0
#include "verdict/history_level.hpp"

#include <algorithm>
#include <cmath>

#include "measure/robust.hpp"
#include "measure/shortest_interval.hpp"
#include "measure/statistics.hpp"
#include "verdict/constants.hpp"
#include "verdict/population.hpp"

namespace assay::verdict {

double noise_of(const std::vector<std::vector<double>>& rows, bool apart) {
  std::vector<double> all;
  const std::size_t runs = rows.empty() ? 0 : rows.front().size();
  for (std::size_t h = 1; h < runs; ++h) {
    std::vector<double> steps;
    for (const auto& row : rows)
      if (!std::isnan(row[h]) && !std::isnan(row[h - 1])) steps.push_back(row[h] - row[h - 1]);
    if (steps.empty()) continue;
    const double together = apart ? median(steps) : 0;
    for (const double step : steps) all.push_back((step - together) / std::sqrt(2.0));
  }
  return all.empty() ? 0.0 : mad_sigma(all);
}

std::size_t level_cut(std::span<const double> values) {
  double sum = 0, most = 0;
  for (const double v : values) sum += v;
  const double n = static_cast<double>(values.size()), mean = sum / n;
  std::size_t cut = 0;
  double left = 0;  // sum of the values before the cut, less the mean
  for (std::size_t i = 1; i < values.size(); ++i) {
    left += values[i - 1] - mean;
    const double k = static_cast<double>(i), between = left * left * n / (k * (n - k));
    if (cut == 0 || between > most) cut = i, most = between;
  }
  return cut;
}

std::vector<std::pair<std::size_t, std::size_t>> ended_losses(std::span<const double> values, double noise) {
  constexpr std::size_t least_runs = 3, most_often = 4;
  constexpr double deviations = 5;
  std::vector<std::pair<std::size_t, std::size_t>> losses;
  if (values.size() <= least_runs) return losses;
  double best = std::min(values[0], values[1]);
  for (std::size_t i = 2; i < values.size(); ++i) best = std::max(best, std::min(values[i - 1], values[i]));
  const double bound = best - std::max(log_deficit(constants::delta_warn), deviations * noise);
  std::size_t changes = 0, begin = 0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    const bool low = values[i] < bound;
    if (low == (values[i - 1] < bound)) continue;
    ++changes;
    if (!low && i - begin >= least_runs) losses.emplace_back(begin, i);
    begin = i;
  }
  if (most_often * changes > values.size()) losses.clear();
  return losses;
}

double scale_of_half(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2, at = shortest_interval(values, half);
  const double length = values[at + half - 1] - values[at];
  const double n = static_cast<double>(values.size());
  return length / 1.349 * (1 + 5 / (n - 1));
}

double drift_of(std::span<const double> changes, double noise) {
  constexpr double least = 0.01, deviations = 4, some = 0.1;
  const double drift = median(changes);
  if (!(std::abs(drift) > std::max(least, deviations * noise))) return drift;
  std::vector<double> others;
  for (const double change : changes)
    if (drift < 0 ? change > drift / 2 : change < drift / 2) others.push_back(change);
  return static_cast<double>(others.size()) > some * static_cast<double>(changes.size()) ? median(others)
                                                                                         : drift;
}

double fleet_sigma(std::span<const double> levels) {
  constexpr std::size_t some = 3, enough = 7;
  if (levels.size() < some) return 0;
  const double spread = mad_sigma(levels);
  if (levels.size() < enough) return spread;
  std::vector<double> steps;
  for (std::size_t i = 1; i < levels.size(); ++i) steps.push_back(levels[i] - levels[i - 1]);
  return std::min(spread, mad_sigma(steps) / std::sqrt(2.0));
}

double fleet_threshold(std::size_t runs, double sigma) {
  constexpr std::size_t some = 3, enough = 5;
  if (runs < enough) return log_deficit(runs < some ? 0.10 : 0.07);
  return std::max(log_deficit(0.04), 4 * sigma);
}

}  // namespace assay::verdict
