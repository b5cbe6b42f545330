// SPDX-License-Identifier: Apache-2.0
#include "verdict/abnormality.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "measure/robust.hpp"
#include "measure/table_place.hpp"
#include "verdict/constants.hpp"
#include "verdict/skew.hpp"

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

/// Mean of `peaked` in normal populations and under Student's t with 4 degrees (3e6/n simulated values each);
/// its lower half spreads by a third under the latter, whatever the size.
struct PeakRow {
  double n, normal, heavy;
};
constexpr std::array<PeakRow, 12> peak_table = {{{6, 0.699, 0.749},
                                                 {8, 0.792, 0.871},
                                                 {12, 0.882, 1.026},
                                                 {16, 0.929, 1.121},
                                                 {24, 0.979, 1.241},
                                                 {32, 1.006, 1.315},
                                                 {48, 1.035, 1.416},
                                                 {64, 1.048, 1.471},
                                                 {100, 1.061, 1.569},
                                                 {200, 1.082, 1.674},
                                                 {500, 1.088, 1.824},
                                                 {2000, 1.095, 2.0}}};
constexpr double peak_spread = 0.33;

PeakRow peaks_of(std::size_t n) {
  const TablePlace at = place_in(peak_table, as_double(n));
  const PeakRow &a = peak_table[at.row], &b = peak_table[at.row + 1];
  return {at.x, a.normal + at.logarithmic * (b.normal - a.normal),
          a.heavy + at.logarithmic * (b.heavy - a.heavy)};
}

struct Moments {
  double peaked = 0, variance = 0;
};

/// Faults are slow and must not make their population look heavy-tailed.
Moments moments_of(std::span<const double> values, const std::vector<double>& scores) {
  double mean = 0, squares = 0, fourth = 0, n = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (scores[i] < -4) continue;
    mean += values[i];
    ++n;
  }
  mean /= n;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (scores[i] < -4) continue;
    const double d = (values[i] - mean) * (values[i] - mean);
    squares += d;
    fourth += d * d;
  }
  if (!(squares > 0) || n < 3) return {};
  return {n < 6 ? 0 : std::log(fourth * n / (squares * squares)), squares / (n - 1)};
}

/// Each against those that remain, which may be skewed.
std::vector<DeletionOutlier> peel(std::span<const double> values, double own, const Skew& shared) {
  auto peeled = slow_by_deletion(values, 1.0, constants::peers_spread_floor);
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t q = 0; q < peeled.size(); ++q) {
    auto& o = peeled[q];
    const auto rest = halves_of_all(std::span(sorted).subspan(q + 1, o.rest));
    // What is itself in question is no evidence.
    const double evidence = std::min(own, rest.skew.evidence);
    const double nearer = nearer_by(values[o.index], o.t, rest, evidence, shared);
    if (nearer <= 1) continue;
    o.t /= nearer;
    o.p = std::min(1.0, t_below(o.t, as_double(o.rest) - 1) * as_double(o.rest + 1) *
                            as_double(counted_peels(values.size())));
  }
  return peeled;
}

/// A population that looks heavy-tailed itself gains nothing from others.
bool looks_heavy(const Abnormality& a) { return a.peaked > peaks_of(a.size).heavy + 0.7 * peak_spread; }

}  // namespace

void TailPool::add(std::size_t n, double peaked, double real) {
  if (n < 6 || !(peaked > 0)) return;
  PeakRow known = peaks_of(n);
  constexpr double little_noise = 0.9;  // moves the kurtosis less than its own error
  if (real < little_noise) known.heavy = known.normal + std::pow(real, 4) * (known.heavy - known.normal);
  // Two kinds of part make a flat population, which says nothing of tails.
  sum_ += (std::max(peaked, known.normal) - known.heavy) / peak_spread;
  ++populations_;
}

double TailPool::gain() const noexcept {
  if (populations_ == 0) return 1;
  const double z = sum_ / std::sqrt(as_double(populations_));
  const double q = std::max(1e-12, 0.5 * std::erfc(-z / std::sqrt(2.0)));
  return std::max(1.0, 0.25 * std::pow(q, -0.75));
}

double heavy_critical(std::size_t n, double alpha, double tail, double degrees) {
  // robust_fit of t4 gives 1.1 times its unit, from 48 values on, that of t8 1.05 times.
  const double scale = 1 + 0.4 / degrees;
  const double one = -std::expm1(std::log1p(-alpha) / as_double(n));
  // The slow extremes of t4 do not depend on its fast ones. Only a fast tail that 95 % of t4 populations stay
  // below (simulated: 2.2 of 48 to 300 values, 1.8 of 1000) says that this one is heavier still.
  const double large = std::clamp(std::log(as_double(n) / 64) / std::log(16.0), 0.0, 1.0);
  const double usual = 2.2 - 0.4 * large, power = 1.5 + 2.5 * large;
  const double heavier = std::pow(std::max(1.0, tail / usual), power);
  return std::max(robust_critical(n, alpha), -t_quantile(one, degrees) / scale) * heavier;
}

double heavy_deletion_p(std::size_t n, double alpha) {
  // Log of the least p (Bonferroni) of the members that `alpha` of simulated populations go under (t4, 6e4
  // each up to 20, else 3e4).
  static constexpr std::array alphas = {0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.0005};
  struct Row {
    double n;
    std::array<double, alphas.size()> log_p;
  };
  static constexpr std::array<Row, 9> table = {
      {{6, {-1.89, -2.81, -3.74, -4.86, -5.74, -6.64, -7.76, -9.75}},
       {8, {-1.62, -2.64, -3.71, -5.12, -6.28, -7.38, -8.82, -11.22}},
       {12, {-1.52, -2.76, -4.06, -6.01, -7.48, -9.11, -11.18, -14.47}},
       {16, {-1.45, -2.84, -4.42, -6.77, -8.75, -10.74, -13.67, -19.23}},
       {20, {-1.43, -3.05, -4.87, -7.79, -10.14, -12.65, -16.49, -21.96}},
       {24, {-1.47, -3.35, -5.44, -8.66, -11.29, -14.53, -18.48, -25.03}},
       {32, {-1.57, -3.70, -6.25, -9.96, -13.07, -16.56, -22.67, -29.34}},
       {40, {-1.80, -4.28, -6.91, -11.31, -15.76, -20.16, -28.00, -36.82}},
       {48, {-1.94, -4.61, -7.76, -12.66, -17.51, -23.30, -30.22, -40.69}}}};
  const TablePlace place = place_in(table, as_double(n));
  std::size_t k = 1;
  while (k + 1 < alphas.size() && alphas[k] > alpha) ++k;  // below the last by its slope
  const double along =
      std::log(std::min(alpha, alphas.front()) / alphas[k - 1]) / std::log(alphas[k] / alphas[k - 1]);
  const auto at = [&](const Row& row) {
    return row.log_p[k - 1] + along * (row.log_p[k] - row.log_p[k - 1]);
  };
  const double low = at(table[place.row]);
  return std::exp(low + place.linear * (at(table[place.row + 1]) - low));
}

double deletion_tests(std::size_t n) { return as_double(n) * as_double(counted_peels(n)); }

void moderate(Abnormality& a, std::span<const double> values, const SpreadPrior& prior) {
  if (!(prior.degrees > 0) || a.size < constants::deletion_min || a.size >= constants::deletion_most) return;
  const double own = as_double(a.size) - 2, most = as_double(constants::deletion_most) - 2;
  a.degrees = std::min(own + prior.degrees, most);
  const double borrowed = a.degrees - own;
  a.variance = ((own + 1) * a.variance + borrowed * prior.variance) / (a.degrees + 1);
  a.moderated.assign(a.size, 1.0);
  double least = 1;
  const auto peeled = peel(values, a.skew.evidence, a.shared);
  for (auto o = peeled.rbegin(); o != peeled.rend(); ++o) {
    const double degrees = as_double(o->rest) - 1;
    const double variance =
        (degrees * o->deviation * o->deviation + borrowed * prior.variance) / (degrees + borrowed);
    const double t = o->t * o->deviation / std::sqrt(variance);
    least = std::min(least, t_below(t, degrees + borrowed) * deletion_tests(a.size));
    a.moderated[o->index] = least / as_double(a.size);
  }
}

Abnormality abnormality(std::span<const double> values, double noise, const Skew& shared) {
  Abnormality a;
  a.size = values.size();
  a.score.assign(a.size, 0.0);
  a.p.assign(a.size, 1.0);
  if (a.size < constants::deletion_min) return a;
  const RobustFit fit = robust_fit(values, constants::peers_spread_floor);
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const Halves halves = halves_of(sorted);
  a.skew = a.told = halves.skew;
  // A part that is slow in several metrics makes all of them skewed.
  if (const Skew rest = halves_of_all(std::span(sorted).subspan(1)).skew; rest.evidence < a.told.evidence)
    a.told = rest;
  a.shared = shared;
  for (std::size_t i = 0; i < a.size; ++i) {
    a.score[i] = robust_score(values[i], fit);
    a.score[i] /= nearer_by(values[i], a.score[i], halves, a.skew.evidence, shared);
  }
  a.tail = std::max(1.0, fast_tail_ratio(a.score));
  const Moments moments = moments_of(values, a.score);
  a.peaked = moments.peaked;
  a.variance = moments.variance;
  if (noise > 0)
    a.real = std::sqrt(std::clamp(1 - noise * noise / (fit.scale * fit.scale), constants::real_least, 1.0));
  if (a.size < constants::deletion_most) {
    // A member farther out than an abnormal one is abnormal too: two slow ones hide each
    // other.
    const auto peeled = peel(values, a.skew.evidence, a.shared);
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

double family_p(const Abnormality& a, std::size_t member) {
  return std::min(1.0, a.p[member] * as_double(a.size));
}

bool abnormal(const Abnormality& a, std::size_t member, double alpha) { return family_p(a, member) <= alpha; }

bool surely_abnormal(const Abnormality& a, std::size_t member, double alpha, const TailPool& pool,
                     double trust) {
  if (a.size < constants::deletion_min) return false;
  constexpr double most = 0.2, certain = 5, guard = 1.1;
  const double gained = alpha * (looks_heavy(a) ? 1.0 : std::pow(pool.gain(), trust));
  // Where the tails are known to be light beyond doubt the bound comes down to that of a normal.
  const double known = std::clamp(std::log(gained / most) / std::log(certain / most), 0.0, 1.0);
  // Deviations of independent parts add in squares: what is noise needs the bound of a normal only.
  const auto bound = [&](double heavy, double normal) {
    const double tails =
        std::pow(std::max(heavy, guard * normal), 1 - known) * std::pow(guard * normal, known);
    return std::hypot(a.real * tails, std::sqrt(1 - a.real * a.real) * normal);
  };
  const double spent = std::min(std::max(gained, alpha), std::max(most, alpha));
  if (a.size < constants::deletion_most) {
    // With a spread that is known from more than the own members, the tail of a population of as many as know
    // it, at the same error for each member.
    const bool lent = !a.moderated.empty();
    const double degrees = lent ? a.degrees : as_double(a.size) - 2, tests = deletion_tests(a.size);
    const auto like = static_cast<std::size_t>(degrees) + 2;
    const double each = spent * as_double(like) / as_double(a.size);
    const double critical = bound(-t_quantile(heavy_deletion_p(like, each) / deletion_tests(like), degrees),
                                  -t_quantile(alpha / tests, degrees));
    const double p = std::min(1.0, (lent ? a.moderated : a.p)[member] * as_double(a.size));
    return p <= t_below(-critical, degrees) * tests;
  }
  return a.score[member] < -bound(heavy_critical(a.size, spent, a.tail), robust_critical(a.size, alpha));
}

double trust_in_tails(const Abnormality& a, double delta) noexcept {
  if (!(a.variance > 0)) return 1;
  const double deviations = delta / std::sqrt(a.variance);
  return std::clamp((deviations - constants::heavy_delta) / (constants::light_delta - constants::heavy_delta),
                    0.0, 1.0);
}

bool surely_abnormal_story(const Abnormality& a, std::size_t member, double alpha) {
  if (a.size < constants::deletion_min) return false;
  if (a.size >= constants::deletion_most)
    return a.score[member] < -heavy_critical(a.size, alpha, a.tail, constants::story_degrees);
  // 8 degrees lie between a normal distribution and 4 degrees.
  return family_p(a, member) <= std::sqrt(alpha * heavy_deletion_p(a.size, alpha));
}

double fault_share(const Abnormality& a) noexcept {
  if (!(a.variance > 0)) return constants::wide_share;
  // Of few parts the spread is known badly: by one error of its own more.
  const double degrees = a.moderated.empty() ? as_double(a.size) - 1 : a.degrees;
  const double variance = a.real * a.real * a.variance * (1 + std::sqrt(2 / degrees));
  const double narrow = constants::narrow_spread * constants::narrow_spread;
  return variance <= narrow ? 1.0 : std::max(constants::wide_share, narrow / variance);
}

double heavy_p(const Abnormality& a, std::size_t member) {
  const TailPool pool;                    // what it knows is used once, where several metrics are combined
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
