// SPDX-License-Identifier: Apache-2.0
#include "verdict/abnormality.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "measure/robust.hpp"
#include "verdict/constants.hpp"

namespace assay::verdict {
namespace {

double as_double(std::size_t n) { return static_cast<double>(n); }

std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) { return values[x] < values[y]; });
  std::vector<double> ranks(values.size());
  for (std::size_t i = 0; i < order.size(); ++i) ranks[order[i]] = as_double(i);
  return ranks;
}

/// Spearman's rank correlation.
double rank_correlation(const std::vector<double>& x, const std::vector<double>& y) {
  const auto a = ranks_of(x), b = ranks_of(y);
  const double n = as_double(a.size());
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) squares += (a[i] - b[i]) * (a[i] - b[i]);
  return 1 - 6 * squares / (n * (n * n - 1));
}

double tail_values(std::size_t n) { return as_double(std::max<std::size_t>(3, n / 50)); }

}  // namespace

void TailPool::add(std::size_t n, double ratio) {
  if (n < constants::robust_min) return;
  sum += ratio * tail_values(n);
  count += tail_values(n);
}

bool TailPool::surely_light() const noexcept {
  // Student's t with 4 degrees has a mean ratio of 1.3 (n = 64) to 1.5 (1024); 60 tail values tell that from 1.
  return count >= 60 && sum / count < 1.12;
}

double heavy_critical(std::size_t n, double alpha, double tail, bool light) {
  const double k = robust_critical(n, alpha);
  // Simulated (t4, 6e3 to 4e4 populations each): 99 % of the slowest of n lie within k * excess * tail^power. Of few values the
  // tail says little, and a high power would only make the bound jump.
  const double large = std::clamp(std::log(as_double(n) / 64) / std::log(16.0), 0.0, 1.0);
  const double power = 1.5 + 2.5 * large;
  const double excess = large < 0.5 ? 2.1 - 0.4 * large : 1.9 - 0.4 * (large - 0.5);
  // The extremes of t4 go with alpha^(-1/4), those of a normal hardly change.
  const double rarer = std::max(1.0, std::pow(0.01 / alpha, 0.22));
  const double heavy = excess * rarer * std::pow(std::max(tail, 1.0), power);
  return k * (1 + (heavy - 1) * (light ? 0.15 : 1.0));
}

double heavy_deletion_p(std::size_t n, double alpha) {
  // A line through simulated populations of 6, 8, 12, 16 and 20 at 1, 2 and 5 %.
  return std::exp(-3.9 - 0.305 * as_double(n)) * std::pow(alpha / 0.01, 0.42 + 0.14 * as_double(n));
}

Abnormality abnormality(std::span<const double> values, double noise) {
  Abnormality a;
  a.size = values.size();
  a.score.assign(a.size, 0.0);
  a.p.assign(a.size, 1.0);
  if (a.size < constants::deletion_min) return a;
  const RobustFit fit = robust_fit(values, constants::peers_spread_floor);
  for (std::size_t i = 0; i < a.size; ++i) a.score[i] = robust_score(values[i], fit);
  a.tail = std::max(1.0, fast_tail_ratio(a.score));
  if (noise > 0) a.real = std::sqrt(std::clamp(1 - noise * noise / (fit.scale * fit.scale), constants::real_least, 1.0));
  if (a.size < constants::robust_min) {
    // Whoever is farther out than one that does not belong does not belong either: two slow ones hide each other.
    const auto peeled = slow_by_deletion(values, 1.0, constants::peers_spread_floor);
    double least = 1;
    for (auto o = peeled.rbegin(); o != peeled.rend(); ++o) {
      least = std::min(least, o->p);
      a.p[o->index] = least / as_double(a.size);
    }
    return a;
  }
  const double guard = fast_tail_inflation(a.score);
  for (std::size_t i = 0; i < a.size; ++i) {
    // The far half alone is asked about; p of the others would cost the time of the whole.
    if (a.score[i] < -1.5) a.p[i] = robust_p_value(a.score[i] / guard, a.size);
  }
  return a;
}

double family_p(const Abnormality& a, std::size_t member) { return std::min(1.0, a.p[member] * as_double(a.size)); }

bool abnormal(const Abnormality& a, std::size_t member, double alpha) { return family_p(a, member) <= alpha; }

bool surely_abnormal(const Abnormality& a, std::size_t member, double alpha, const TailPool& pool) {
  if (a.size < constants::deletion_min) return false;
  // Deviations of independent parts add in squares: what is noise needs the bound of a normal only.
  const auto bound = [&](double heavy, double normal) {
    return std::hypot(a.real * heavy, std::sqrt(1 - a.real * a.real) * normal);
  };
  if (a.size < constants::robust_min) {
    const double tests = as_double(a.size) * as_double(std::max<std::size_t>(1, a.size / 4)), degrees = as_double(a.size) - 2;
    const double critical = bound(-t_quantile(heavy_deletion_p(a.size, alpha) / tests, degrees), -t_quantile(alpha / tests, degrees));
    return family_p(a, member) <= t_below(-critical, degrees) * tests;
  }
  const double normal = robust_critical(a.size, alpha);
  return a.score[member] < -bound(heavy_critical(a.size, alpha, a.tail, pool.surely_light()), normal);
}

double heavy_p(const Abnormality& a, std::size_t member, const TailPool& pool) {
  double low = std::log(1e-9), high = 0;  // of alpha: not abnormal at the first, abnormal at the second
  if (!surely_abnormal(a, member, 0.5, pool)) return 1;
  for (int step = 0; step < 24; ++step) {
    const double middle = 0.5 * (low + high);
    (surely_abnormal(a, member, std::exp(middle), pool) ? high : low) = middle;
  }
  return std::max(1e-9, std::exp(high) / as_double(a.size));
}

bool alike(std::span<const double> a, std::span<const double> b) {
  std::vector<double> x, y;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()) && x.size() < 2000; ++i) {
    // Faults are slow, in several metrics at once: they say nothing of how the healthy are.
    if (a[i] < -2 || b[i] < -2) continue;
    x.push_back(a[i]);
    y.push_back(b[i]);
  }
  if (x.size() < constants::deletion_min) return true;
  const double least = constants::alike_errors / std::sqrt(as_double(x.size()));
  if (rank_correlation(x, y) > least) return true;
  for (auto* values : {&x, &y})
    for (double& v : *values) v = std::abs(v);
  return rank_correlation(x, y) > least;
}

}  // namespace assay::verdict
