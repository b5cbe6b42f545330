// SPDX-License-Identifier: Apache-2.0
// Shifts, intervals and many tests: the second half of robust.hpp.
#include <algorithm>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.hpp"
#include "base/random.hpp"
#include "measure/robust.hpp"
#include "measure/statistics.hpp"

namespace assay {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::size_t max_pairs = 4'000'000;

/// (v_i + v_j) / 2 for i <= j, or a fixed sample of them.
std::vector<double> walsh_averages(std::span<const double> v) {
  const std::size_t n = v.size();
  std::vector<double> w;
  if (n <= 2000) {
    w.reserve(n * (n + 1) / 2);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t k = i; k < n; ++k) w.push_back((v[i] + v[k]) / 2);
    }
    return w;
  }
  const RandomStream pick(n, "walsh");
  w.reserve(max_pairs);
  for (std::size_t i = 0; i < max_pairs; ++i)
    w.push_back((v[pick.below(2 * i, n)] + v[pick.below(2 * i + 1, n)]) / 2);
  return w;
}

/// b_k - a_i, or a fixed sample of them.
std::vector<double> pair_differences(std::span<const double> a, std::span<const double> b) {
  std::vector<double> d;
  if (a.size() <= max_pairs / std::max<std::size_t>(b.size(), 1)) {
    d.reserve(a.size() * b.size());
    for (const double y : b) {
      for (const double x : a) d.push_back(y - x);
    }
    return d;
  }
  const RandomStream pick(a.size() + b.size(), "pairs");
  d.reserve(max_pairs);
  for (std::size_t i = 0; i < max_pairs; ++i)
    d.push_back(b[pick.below(2 * i, b.size())] - a[pick.below(2 * i + 1, a.size())]);
  return d;
}

/// The largest k with P(T <= k) <= tail, -1 if there is none. `mass` is the distribution of T from 0 up.
double lower_count(const std::vector<double>& mass, double tail) {
  double below = 0;
  for (std::size_t k = 0; k < mass.size(); ++k) {
    below += mass[k];
    if (below > tail * (1 + 1e-12)) return as_double(k) - 1;
  }
  return as_double(mass.size()) - 1;
}

/// Wilcoxon's signed rank sum of n values.
std::vector<double> signed_rank_mass(std::size_t n) {
  std::vector<double> mass(n * (n + 1) / 2 + 1, 0.0);
  mass[0] = 1;
  for (std::size_t r = 1; r <= n; ++r) {
    for (std::size_t s = mass.size(); s-- > 0;) mass[s] = 0.5 * (mass[s] + (s >= r ? mass[s - r] : 0));
  }
  return mass;
}

/// Mann-Whitney's U of m and n values: P(u; m, n) = n/(m+n) P(u; m, n-1) + m/(m+n) P(u-n; m-1, n).
std::vector<double> rank_sum_mass(std::size_t m, std::size_t n) {
  std::vector<std::vector<double>> before(n + 1, std::vector<double>{1.0});
  for (std::size_t i = 1; i <= m; ++i) {
    std::vector<std::vector<double>> now(n + 1);
    now[0] = {1.0};
    for (std::size_t k = 1; k <= n; ++k) {
      now[k].assign(i * k + 1, 0.0);
      const double all = as_double(i + k);
      for (std::size_t u = 0; u < now[k - 1].size(); ++u) now[k][u] += as_double(k) / all * now[k - 1][u];
      for (std::size_t u = 0; u < before[k].size(); ++u) now[k][u + k] += as_double(i) / all * before[k][u];
    }
    before = std::move(now);
  }
  return before[n];
}

/// The (k+1)-th smallest and largest of `all` pairs, read from `pairs`, which may be a sample of them.
Interval between(std::vector<double> pairs, double k, double all) {
  if (k < 0) return {-infinity, infinity};
  const double last = as_double(pairs.size() - 1);
  const auto at =
      static_cast<std::ptrdiff_t>(std::min(last, std::floor(k / all * as_double(pairs.size()) + 1e-9)));
  const auto from_end = static_cast<std::ptrdiff_t>(last) - at;
  if (at > from_end) return {-infinity, infinity};
  std::nth_element(pairs.begin(), pairs.begin() + at, pairs.end());
  const double low = pairs[static_cast<std::size_t>(at)];
  std::nth_element(pairs.begin(), pairs.begin() + from_end, pairs.end());
  return {low, pairs[static_cast<std::size_t>(from_end)]};
}

double log_choose(std::size_t n, std::size_t k) {
  return std::lgamma(as_double(n) + 1) - std::lgamma(as_double(k) + 1) - std::lgamma(as_double(n - k) + 1);
}

std::vector<std::size_t> ascending(std::span<const double> p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return p[a] < p[b]; });
  return order;
}

}  // namespace

double hodges_lehmann(std::span<const double> values) {
  if (values.empty()) throw Error(ErrorKind::internal, "statistics of no values");
  return median(walsh_averages(values));
}

double hodges_lehmann(std::span<const double> a, std::span<const double> b) {
  if (a.empty() || b.empty()) throw Error(ErrorKind::internal, "statistics of no values");
  return median(pair_differences(a, b));
}

Interval shift_interval(std::span<const double> differences, double confidence) {
  const std::size_t n = differences.size();
  if (n == 0) return {-infinity, infinity};
  const double tail = (1 - confidence) / 2, all = as_double(n) * as_double(n + 1) / 2;
  double k = 0;
  if (n <= 50) {
    k = lower_count(signed_rank_mass(n), tail);
  } else {
    const double sigma = std::sqrt(all * (2 * as_double(n) + 1) / 12);
    k = std::floor(all / 2 + normal_quantile(tail) * sigma - 0.5);
  }
  return between(walsh_averages(differences), k, all);
}

Interval shift_interval(std::span<const double> a, std::span<const double> b, double confidence) {
  if (a.empty() || b.empty()) return {-infinity, infinity};
  const double tail = (1 - confidence) / 2, all = as_double(a.size()) * as_double(b.size());
  double k = 0;
  if (all <= 2500) {
    k = lower_count(rank_sum_mass(a.size(), b.size()), tail);
  } else {
    const double sigma = std::sqrt(all * as_double(a.size() + b.size() + 1) / 12);
    k = std::floor(all / 2 + normal_quantile(tail) * sigma - 0.5);
  }
  return between(pair_differences(a, b), k, all);
}

double fisher_p(std::size_t hits, std::size_t drawn, std::size_t marked, std::size_t total) {
  if (drawn > total || marked > total)
    throw Error(ErrorKind::internal, "Fisher's test of parts larger than the whole");
  double p = 0;
  for (std::size_t h = hits; h <= std::min(drawn, marked); ++h) {
    if (drawn - h > total - marked) continue;
    p += std::exp(log_choose(marked, h) + log_choose(total - marked, drawn - h) - log_choose(total, drawn));
  }
  return std::min(p, 1.0);
}

double fisher_combine(std::span<const double> p) {
  if (p.empty()) return 1;
  double sum = 0;
  for (const double one : p) sum -= std::log(std::clamp(one, 1e-300, 1.0));
  // Half the statistic is gamma-distributed with as many shapes as there are values.
  return boost::math::gamma_q(static_cast<double>(p.size()), sum);
}

std::vector<double> holm(std::span<const double> p) {
  std::vector<double> adjusted(p.size());
  double highest = 0;
  std::size_t left = p.size();
  for (const std::size_t i : ascending(p)) {
    highest = std::max(highest, std::min(1.0, p[i] * as_double(left--)));
    adjusted[i] = highest;
  }
  return adjusted;
}

}  // namespace assay
