// SPDX-License-Identifier: Apache-2.0
#include "measure/robust.hpp"

#include <algorithm>
#include <array>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.hpp"
#include "measure/shortest_interval.hpp"
#include "measure/statistics.hpp"
#include "measure/table_place.hpp"

namespace assay {
namespace {

/// 1 / sqrt(1 - 2 * 3 phi(3) / (2 Phi(3) - 1)): what cutting a normal at 3 sigma takes from its deviation.
constexpr double kappa = 1.0136;
constexpr std::size_t rpd_least = 24;

std::vector<double> sorted(std::span<const double> values) {
  std::vector<double> v(values.begin(), values.end());
  std::sort(v.begin(), v.end());
  return v;
}

void need(std::span<const double> values) {
  if (values.empty()) throw Error(ErrorKind::internal, "statistics of no values");
}

/// Mean and scale of the shortest half of sorted values.
RobustFit shortest_half(const std::vector<double>& v) {
  const std::size_t n = v.size(), h = n / 2 + 1, at = shortest_interval(v, h);
  RobustFit fit;
  const auto first = v.begin() + static_cast<std::ptrdiff_t>(at);
  fit.centre = std::accumulate(first, first + static_cast<std::ptrdiff_t>(h), 0.0) / as_double(h);
  fit.scale = (v[at + h - 1] - v[at]) / 2 / normal_quantile(0.5 + 0.5 * as_double(h) / as_double(n + 1));
  fit.kept = h;
  return fit;
}

/// A healthy normal population gives scores that spread like a scaled t: P(score < -k) = T(-k/scale;
/// degrees). Fitted per size to 10 %, 1 % and 0.1 % of the lowest of n in 4e5 (n = 24) to 3e4 (n = 4096)
/// simulated populations; off by 1.6 % at most (n = 32). tests/unit/measure/robust_test.cpp repeats a part.
struct NullRow {
  double n, scale, degrees;
};
constexpr std::array<NullRow, 10> null_table = {{{24, 0.836, 7.5},
                                                 {32, 0.788, 8.95},
                                                 {48, 0.948, 22.4},
                                                 {64, 0.969, 33.8},
                                                 {96, 0.990, 63.0},
                                                 {128, 0.994, 87.2},
                                                 {256, 1.002, 276},
                                                 {512, 1.000, 470},
                                                 {1024, 1.000, 1013},
                                                 {4096, 1.000, 4000}}};

NullRow null_of(std::size_t n) {
  const TablePlace at = place_in(null_table, as_double(n));
  const NullRow &a = null_table[at.row], &b = null_table[at.row + 1];
  const double w = at.logarithmic;
  // 1/degrees goes to 0 as the population grows.
  return {at.x, a.scale + w * (b.scale - a.scale), 1 / (1 / a.degrees + w * (1 / b.degrees - 1 / a.degrees))};
}

struct Rest {
  double mean = 0, deviation = 0;
};
Rest rest_of(std::span<const double> sorted, double floor) {
  Rest r;
  for (const double v : sorted) r.mean += v / as_double(sorted.size());
  double squares = 0;
  for (const double v : sorted) squares += (v - r.mean) * (v - r.mean);
  r.deviation = std::max(std::sqrt(squares / as_double(sorted.size() - 1)), floor);
  return r;
}

/// How many of the fastest lie apart beyond any doubt, found by peeling what is farthest from the median on
/// either side.
std::size_t fast_apart(std::span<const double> sorted, double floor) {
  constexpr double beyond_doubt = 1e-5;
  const std::size_t n = sorted.size();
  const double middle = median(sorted);
  std::size_t low = 0, high = n, apart = 0;
  while (high - low > std::max<std::size_t>(4, n / 2)) {
    const bool fast = sorted[high - 1] - middle > middle - sorted[low];
    const double value = fast ? sorted[--high] : sorted[low++];
    const std::size_t left = high - low;
    const Rest rest = rest_of(sorted.subspan(low, left), floor);
    const double t = std::abs(value - rest.mean) / (rest.deviation * std::sqrt(1 + 1 / as_double(left)));
    const double p = t_below(-t, as_double(left) - 1) * as_double(n) * as_double(counted_peels(n));
    if (p <= beyond_doubt) apart = n - high;
  }
  return apart;
}

}  // namespace

double normal_quantile(double p) {
  if (!(p > 0)) return -std::numeric_limits<double>::infinity();
  if (!(p < 1)) return std::numeric_limits<double>::infinity();
  return boost::math::quantile(boost::math::normal(), p);
}

double t_quantile(double p, double degrees) {
  if (!(p > 0)) return -std::numeric_limits<double>::infinity();
  if (!(p < 1)) return std::numeric_limits<double>::infinity();
  return boost::math::quantile(boost::math::students_t(degrees), p);
}

double t_below(double t, double degrees) {
  if (std::isinf(t)) return t < 0 ? 0 : 1;
  return boost::math::cdf(boost::math::students_t(degrees), t);
}

std::size_t counted_peels(std::size_t n) noexcept { return std::max<std::size_t>(1, n / 4); }

RobustFit robust_fit(std::span<const double> values, double floor) {
  need(values);
  const auto v = sorted(values);
  RobustFit fit = shortest_half(v);
  fit.scale = std::max(fit.scale, floor);
  for (int round = 0; round < 4; ++round) {
    const auto first = std::lower_bound(v.begin(), v.end(), fit.centre - 3 * fit.scale);
    const auto last = std::upper_bound(first, v.end(), fit.centre + 3 * fit.scale);
    const auto n = static_cast<std::size_t>(last - first);
    if (n == 0) break;
    const double mean = std::accumulate(first, last, 0.0) / as_double(n);
    double squares = 0;
    for (auto i = first; i != last; ++i) squares += (*i - mean) * (*i - mean);
    fit.centre = mean;
    fit.scale = std::max(kappa * std::sqrt(squares / as_double(std::max<std::size_t>(n - 1, 1))), floor);
    fit.kept = n;
  }
  return fit;
}

double robust_score(double value, const RobustFit& fit) noexcept {
  return (value - fit.centre) /
         (fit.scale * std::sqrt(1 + 1 / as_double(std::max<std::size_t>(fit.kept, 1))));
}

double robust_p_value(double score, std::size_t n) {
  const NullRow null = null_of(std::max(n, rpd_least));
  return t_below(score / null.scale, null.degrees);
}

double robust_critical(std::size_t n, double alpha) {
  const NullRow null = null_of(std::max(n, rpd_least));
  const double one = -std::expm1(std::log1p(-alpha) / as_double(std::max<std::size_t>(n, 1)));
  return -null.scale * t_quantile(one, null.degrees);
}

double fast_tail_ratio(std::span<const double> scores) {
  if (scores.size() < 8) return 1;
  auto v = sorted(scores);
  constexpr double far = 4.0;
  const std::size_t n = v.size();
  // All that is far, or, where parts lie in between, the farthest of it.
  for (const double from : {far, std::max(far, v.back() / 2)}) {
    const auto first = std::upper_bound(v.begin(), v.end(), from);
    const std::span<const double> fast(first, v.end());
    if (fast.size() < 3) break;
    const double mean = std::accumulate(fast.begin(), fast.end(), 0.0) / as_double(fast.size());
    double squares = 0;
    for (const double t : fast) squares += (t - mean) * (t - mean);
    const double deviation = std::sqrt(squares / as_double(fast.size()));
    const bool large = as_double(fast.size()) >= 0.04 * as_double(n), isolated = fast.front() > 1.5 * far;
    if (deviation >= (large ? 2.5 : isolated ? std::max(1.5, 0.1 * mean) : 0)) continue;
    v.erase(first, v.end());
    break;
  }
  const std::size_t left = v.size(), tail = std::min(left, std::max<std::size_t>(3, n / 50));
  const double most = left > tail ? std::max(far, 3 * v[left - tail - 1]) : v.back();
  double mean = 0, expected = 0;
  for (std::size_t i = left - tail; i < left; ++i) {
    mean += std::min(v[i], most);
    expected += normal_quantile((as_double(i + 1) - 0.375) / (as_double(left) + 0.25));  // Blom
  }
  return mean / expected;
}

double fast_tail_inflation(std::span<const double> scores) {
  if (scores.size() < 32) return 1;
  const double ratio = fast_tail_ratio(scores);
  return ratio > 1.25 ? ratio : 1;
}

std::vector<DeletionOutlier> slow_by_deletion(std::span<const double> values, double alpha, double floor) {
  std::vector<DeletionOutlier> peeled;
  if (values.size() < 4) return peeled;
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return values[a] < values[b]; });
  std::vector<double> v;
  for (const std::size_t i : order) v.push_back(values[i]);
  const std::size_t n = v.size() - fast_apart(v, floor), tests = counted_peels(v.size()),
                    peels = std::max(tests, (n - 1) / (n < 8 ? 3 : 2));
  std::size_t last = 0;
  for (std::size_t q = 0; q < peels; ++q) {
    const std::size_t left = n - q, rest = left - 1;
    if (rest < 3) break;
    const Rest others = rest_of(std::span(v).subspan(q + 1, rest), floor);
    DeletionOutlier o{order[q],
                      (v[q] - others.mean) / (others.deviation * std::sqrt(1 + 1 / as_double(rest))), 1,
                      others.deviation, rest};
    o.p = std::min(1.0, t_below(o.t, as_double(left) - 2) * as_double(left) * as_double(tests));
    peeled.push_back(o);
    if (o.p <= alpha) last = q + 1;
  }
  peeled.resize(last);
  return peeled;
}

Split best_split(std::span<const double> values, double floor, std::size_t least) {
  const std::size_t n = values.size();
  if (least == 0) least = static_cast<std::size_t>(std::max(3.0, std::ceil(0.04 * as_double(n))));
  Split best;
  if (n < 2 * least) return best;
  auto v = sorted(values);
  const double shift = v[n / 2];  // sums of squares of small numbers lose no digits
  double all = 0, all_squares = 0;
  for (double& x : v) {
    x -= shift;
    all += x;
    all_squares += x * x;
  }
  double sum = 0, squares = 0;
  for (std::size_t k = 1; k + least <= n; ++k) {
    sum += v[k - 1];
    squares += v[k - 1] * v[k - 1];
    if (k < least) continue;
    const double low = sum / as_double(k), high = (all - sum) / as_double(n - k);
    const double within = squares - sum * low + (all_squares - squares) - (all - sum) * high;
    const double deviation = std::max(std::sqrt(std::max(within, 0.0) / as_double(n - 2)), floor);
    const double distance = (high - low) / deviation;
    if (distance <= best.distance) continue;
    best = {distance, shift + (v[k - 1] + v[k]) / 2, shift + low, shift + high, k, n - k};
  }
  return best;
}

std::vector<std::size_t> cluster_cuts(std::span<const double> values, std::size_t clusters) {
  const std::size_t n = values.size();
  std::vector<double> sums(n + 1, 0.0), squares(n + 1, 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    const double x = values[i] - values[n / 2];  // sums of squares of small numbers lose no digits
    sums[i + 1] = sums[i] + x;
    squares[i + 1] = squares[i] + x * x;
  }
  const auto within = [&](std::size_t from, std::size_t to) {
    const double sum = sums[to] - sums[from];
    return squares[to] - squares[from] - sum * sum / as_double(to - from);
  };
  struct Cut {
    std::size_t at;
    double gain;
  };
  const auto best_in = [&](std::size_t from, std::size_t to) {
    Cut best{from, 0};
    const double whole = within(from, to);
    for (std::size_t k = from + 1; k < to; ++k) {
      const double gain = whole - within(from, k) - within(k, to);
      if (gain > best.gain) best = {k, gain};
    }
    return best;
  };
  std::vector<std::size_t> edges = {0, n};
  while (edges.size() < clusters + 1) {
    Cut best{0, 0};
    for (std::size_t e = 0; e + 1 < edges.size(); ++e) {
      const Cut one = best_in(edges[e], edges[e + 1]);
      if (one.gain > best.gain) best = one;
    }
    if (!(best.gain > 0)) break;
    edges.insert(std::lower_bound(edges.begin(), edges.end(), best.at), best.at);
    bool moved = edges.size() > 3;
    for (int round = 0; moved && round < 20; ++round) {
      moved = false;
      for (std::size_t e = 1; e + 1 < edges.size(); ++e) {
        const Cut one = best_in(edges[e - 1], edges[e + 1]);
        moved = moved || (one.gain > 0 && one.at != edges[e]);
        if (one.gain > 0) edges[e] = one.at;
      }
    }
  }
  return {edges.begin() + 1, edges.end() - 1};
}

Line robust_line(std::span<const double> x, std::span<const double> y) {
  const std::size_t n = std::min(x.size(), y.size());
  if (n == 0) throw Error(ErrorKind::internal, "a line through no values");
  const double middle = median(x.first(n));
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return x[a] < x[b]; });
  std::vector<double> part_x[2], part_y[2];
  const std::size_t third = std::max<std::size_t>(1, n / 3);
  for (std::size_t i = 0; i < third; ++i) {
    for (const int side : {0, 1}) {
      const std::size_t at = side == 0 ? order[i] : order[n - 1 - i];
      part_x[side].push_back(x[at]);
      part_y[side].push_back(y[at]);
    }
  }
  Line line;
  const double run = median(part_x[1]) - median(part_x[0]);
  if (run > 0) line.slope = (median(part_y[1]) - median(part_y[0])) / run;
  std::vector<double> residual(n);
  double sxx = 0;
  for (int round = 0; round < 30; ++round) {
    for (std::size_t i = 0; i < n; ++i) residual[i] = y[i] - line.slope * (x[i] - middle);
    if (round == 0) line.intercept = median(residual);
    for (double& r : residual) r -= line.intercept;
    line.scale = std::max(mad_sigma(residual), 1e-9);
    double sw = 0, sx = 0, sy = 0, sxy = 0;
    sxx = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double u = residual[i] / (4.685 * line.scale);
      const double w = std::abs(u) < 1 ? (1 - u * u) * (1 - u * u) : 0, dx = x[i] - middle;
      sw += w;
      sx += w * dx;
      sy += w * y[i];
      sxx += w * dx * dx;
      sxy += w * dx * y[i];
    }
    const double spread = sxx - sx * sx / sw;
    const double slope = spread > 1e-18 && run > 0 ? (sxy - sx * sy / sw) / spread : 0;
    const double intercept = (sy - slope * sx) / sw;
    const bool settled = std::abs(slope - line.slope) < 1e-9 && std::abs(intercept - line.intercept) < 1e-9;
    line.slope = slope;
    line.intercept = intercept;
    sxx = spread;
    if (settled) break;
  }
  line.slope_error = sxx > 1e-18 ? line.scale / std::sqrt(sxx) : std::numeric_limits<double>::infinity();
  line.intercept -= line.slope * middle;
  return line;
}

}  // namespace assay
