// SPDX-License-Identifier: Apache-2.0
// Falls of lines of log rates: of one member against the others, and of all together.
#include <algorithm>
#include <cmath>
#include <limits>

#include "measure/statistics.hpp"
#include "verdict/abnormality.hpp"
#include "verdict/constants.hpp"
#include "verdict/drift.hpp"
#include "verdict/population.hpp"

namespace assay::verdict {
namespace {

/// Of a steady loss, what lies between the middles of the first and of the last quarter.
constexpr double shown_by_quarters = 0.75;

double change_of(const std::vector<double>& line) {
  const std::size_t quarter = std::max<std::size_t>(1, line.size() / 4);
  const auto end = [](std::size_t n) { return static_cast<std::ptrdiff_t>(n); };
  return median_of_known({line.end() - end(quarter), line.end()}) -
         median_of_known({line.begin(), line.begin() + end(quarter)});
}

/// Median over the lines at every time.
std::vector<double> middle_of(const std::vector<std::vector<double>>& lines) {
  std::vector<double> middle;
  for (std::size_t s = 0; s < lines.front().size(); ++s) {
    std::vector<double> at;
    for (const auto& line : lines) at.push_back(line[s]);
    middle.push_back(median_of_known(std::move(at)));
  }
  return middle;
}

struct Sums {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0, yy = 0;
  void add(double at, double value) {
    if (std::isnan(value)) return;
    ++n, x += at, y += value, xx += at * at, xy += at * value, yy += value * value;
  }
  double rest_of_level() const { return yy - y * y / n; }
};

}  // namespace

double median_of_known(std::vector<double> values) {
  std::erase_if(values, [](double v) { return std::isnan(v); });
  return values.empty() ? std::numeric_limits<double>::quiet_NaN() : median(values);
}

Fall fall_of(std::span<const double> line) {
  Fall best;
  double least = std::numeric_limits<double>::infinity();
  const auto take = [&](double rest, Fall fall) {
    if (!(fall.change < 0) || rest >= least * (1 - 1e-9)) return;
    least = rest;
    best = fall;
  };
  for (std::size_t begin = 0; begin + 1 < line.size(); ++begin) {
    Sums all, before, after;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const double x = i > begin ? static_cast<double>(i - begin) : 0;
      all.add(x, line[i]);
      (i > begin ? after : before).add(x, line[i]);
    }
    if (before.n > 0 && after.n > 0)
      take(before.rest_of_level() + after.rest_of_level(),
           {begin + 1, after.y / after.n - before.y / before.n});
    const double spread = all.xx - all.x * all.x / all.n, along = all.xy - all.x * all.y / all.n;
    if (spread > 0)
      take(all.rest_of_level() - along * along / spread,
           {begin, along / spread * static_cast<double>(line.size() - 1 - begin)});
  }
  return best;
}

std::optional<Fall> common_fall_of(std::vector<std::vector<double>> lines, double least) {
  std::erase_if(lines, [](const auto& line) {
    return std::count_if(line.begin(), line.end(), [](double y) { return !std::isnan(y); }) <
           static_cast<std::ptrdiff_t>(constants::drift_least_times);
  });
  if (lines.empty()) return std::nullopt;
  for (auto& line : lines) {
    const double own = median_of_known(line);
    for (double& y : line) y -= own;
  }
  const std::vector<double> common = middle_of(lines);
  std::vector<double> steps;
  for (std::size_t s = 1; s < common.size(); ++s)
    if (!std::isnan(common[s] - common[s - 1])) steps.push_back(common[s] - common[s - 1]);
  const double change = change_of(common);
  if (steps.size() + 1 < constants::drift_least_times || !(change <= -shown_by_quarters * least) ||
      -change <= constants::drift_common_deviations * mad_sigma(steps) / std::sqrt(2.0))
    return std::nullopt;
  // A line without values in the first or last quarter says nothing of the others.
  std::ptrdiff_t known = 0, shown = 0;
  for (const auto& line : lines) {
    const double own = change_of(line);
    known += std::isnan(own) ? 0 : 1;
    shown += own <= change / 2 ? 1 : 0;
  }
  if (2 * known < std::ssize(lines) || 10 * shown < 9 * known) return std::nullopt;
  Fall fall = fall_of(common);
  fall.change = std::min(fall.change, change);
  return fall;
}

std::vector<Drifter> drifters_of(std::vector<std::vector<double>> lines, double alpha) {
  std::vector<Drifter> named;
  if (lines.size() < constants::peers_min_population || lines.front().size() < constants::drift_least_times)
    return named;
  const std::vector<double> middle = middle_of(lines);
  for (auto& line : lines)
    for (std::size_t s = 0; s < line.size(); ++s) line[s] -= middle[s];
  std::vector<double> changes;
  std::vector<std::size_t> who;
  for (std::size_t m = 0; m < lines.size(); ++m) {
    const double change = change_of(lines[m]);
    if (std::isnan(change)) continue;
    changes.push_back(change);
    who.push_back(m);
  }
  if (changes.size() < constants::peers_min_population) return named;
  const auto abnormal_ones = abnormality(changes);
  const TailPool nothing;
  double least_of_peers = 0;
  for (std::size_t k = 0; k < changes.size(); ++k) {
    const bool lost = changes[k] < -shown_by_quarters * log_deficit(constants::delta_drift) &&
                      surely_abnormal(abnormal_ones, k, alpha, nothing);
    if (lost) {
      Fall fall = fall_of(lines[who[k]]);
      if (!(fall.change < 0)) fall = {0, changes[k]};
      named.push_back({who[k], fall.begin, fall.change, 0});
    } else {
      least_of_peers = std::min(least_of_peers, changes[k]);
    }
  }
  for (auto& d : named) d.least_of_peers = least_of_peers;
  return named;
}

}  // namespace assay::verdict
