// SPDX-License-Identifier: Apache-2.0
#include "verdict/compare_shift.hpp"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

namespace assay::verdict {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// The null distribution of a rank statistic that is symmetric about `mean`.
struct RankNull {
  std::vector<double> tail;  ///< exact: P(T <= i); empty where the normal approximation serves
  double mean = 0, sigma = 0;

  double below(double t) const {
    if (tail.empty()) return boost::math::cdf(boost::math::normal(mean, sigma), t + 0.5);
    return t < 0 ? 0 : tail[std::min(tail.size() - 1, static_cast<std::size_t>(t))];
  }
  /// The largest t with P(T <= t) <= p; -1 if there is none.
  double largest_below(double p) const {
    if (tail.empty()) return std::floor(boost::math::quantile(boost::math::normal(mean, sigma), p) - 0.5);
    const auto first_above = std::upper_bound(tail.begin(), tail.end(), p);
    return static_cast<double>(first_above - tail.begin()) - 1;
  }
};

RankNull from_counts(const std::vector<double>& counts) {
  RankNull null;
  const double all = std::accumulate(counts.begin(), counts.end(), 0.0);
  double sum = 0;
  for (const double c : counts) null.tail.push_back((sum += c) / all);
  return null;
}

/// Mann and Whitney's U: how many pairs have b below a. Counts by the recursion over the largest value.
RankNull rank_sum_null(std::size_t n, std::size_t m) {
  RankNull null;
  const double nm = static_cast<double>(n) * static_cast<double>(m);
  null.mean = nm / 2;
  null.sigma = std::sqrt(nm * static_cast<double>(n + m + 1) / 12);
  if (n > 40 || m > 40) return null;
  // counts[i][u]: arrangements of i values of a and the first j of b with U = u; the largest value is of a or
  // of b.
  std::vector<std::vector<double>> counts(n + 1, std::vector<double>(n * m + 1, 0));
  for (auto& row : counts) row[0] = 1;
  for (std::size_t j = 1; j <= m; ++j)
    for (std::size_t i = 1; i <= n; ++i)
      for (std::size_t u = j; u <= n * m; ++u) counts[i][u] += counts[i - 1][u - j];
  return from_counts(counts[n]);
}

/// Wilcoxon's signed-rank sum: sums of all subsets of 1..n.
RankNull signed_rank_null(std::size_t n) {
  const double size = static_cast<double>(n);
  RankNull null;
  null.mean = size * (size + 1) / 4;
  null.sigma = std::sqrt(size * (size + 1) * (2 * size + 1) / 24);
  if (n > 50) return null;
  std::vector<double> counts(n * (n + 1) / 2 + 1, 0);
  counts[0] = 1;
  for (std::size_t k = 1; k <= n; ++k)
    for (std::size_t s = counts.size(); s-- > k;) counts[s] += counts[s - k];
  return from_counts(counts);
}

/// The k-th smallest (from 1) of values that are only counted, by bisection down to neighbouring numbers.
double kth(double k, double low, double high, const std::function<double(double)>& count_up_to) {
  for (int step = 0; step < 200 && low < high; ++step) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) break;
    (count_up_to(middle) >= k ? high : low) = middle;
  }
  return high;
}

/// All differences b - a, or all averages of two: sorted access without making them.
class Sums {
 public:
  /// x[i] + y[j] over all i, j; with `half` over i <= j of x = y only.
  Sums(std::vector<double> x, std::vector<double> y, bool half)
      : x_(std::move(x)), y_(std::move(y)), half_(half) {
    std::sort(x_.begin(), x_.end());
    std::sort(y_.begin(), y_.end());
    const double n = static_cast<double>(x_.size()), m = static_cast<double>(y_.size());
    size_ = half_ ? n * (n + 1) / 2 : n * m;
  }
  double size() const noexcept { return size_; }
  double count_up_to(double t) const {
    double all = 0, diagonal = 0;
    std::size_t j = y_.size();
    for (const double x : x_) {
      while (j > 0 && x + y_[j - 1] > t) --j;
      all += static_cast<double>(j);
      if (half_ && x + x <= t) ++diagonal;
    }
    return half_ ? (all + diagonal) / 2 : all;
  }
  double at(double k) const {
    const double low = x_.front() + y_.front(), high = x_.back() + y_.back();
    return kth(k, std::nextafter(low, -HUGE_VAL), high, [this](double t) { return count_up_to(t); });
  }
  double median() const {
    const double middle = std::floor((size_ + 1) / 2);
    return std::fmod(size_, 2) == 1 ? at(middle) : (at(middle) + at(middle + 1)) / 2;
  }

 private:
  std::vector<double> x_, y_;
  bool half_;
  double size_ = 0;
};

Shift rank_shift(const Sums& sums, const RankNull& null, double alpha, double scale) {
  Shift s{scale * sums.median(), nan, nan, nan, nan, nan, "permutation"};
  const auto interval = [&](double p, double& low, double& high) {
    const double cut = null.largest_below(p);
    low = cut < 0 ? -HUGE_VAL : scale * sums.at(cut + 1);
    high = cut < 0 ? HUGE_VAL : scale * sums.at(sums.size() - cut);
  };
  interval(alpha / 2, s.low, s.high);
  interval(alpha, s.narrow_low, s.narrow_high);
  // Half of what is exactly 0 counts on either side.
  const double up_to = sums.count_up_to(0),
               under = sums.count_up_to(-std::numeric_limits<double>::denorm_min());
  const double t = std::min(under, sums.size() - up_to) + (up_to - under) / 2;
  s.p = std::min(1.0, 2 * null.below(std::floor(t)));
  return s;
}

struct MeanVariance {
  double n, mean, variance;
};

MeanVariance moments(std::span<const double> values) {
  const double n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const double v : values) squares += (v - mean) * (v - mean);
  return {n, mean, n > 1 ? squares / (n - 1) : nan};
}

Shift t_shift(double estimate, double se, double df, double alpha, const char* method) {
  if (!(se > 0) || !(df > 0)) {
    // Equal to the last bit: no spread to measure a shift with, and none to doubt it by.
    const bool exact = se == 0;
    return {estimate,
            exact ? estimate : nan,
            exact ? estimate : nan,
            exact ? estimate : nan,
            exact ? estimate : nan,
            exact ? (estimate == 0 ? 1.0 : 0.0) : nan,
            method};
  }
  const boost::math::students_t t(df);
  const double wide = se * boost::math::quantile(t, 1 - alpha / 2),
               narrow = se * boost::math::quantile(t, 1 - alpha);
  return {estimate,
          estimate - wide,
          estimate + wide,
          estimate - narrow,
          estimate + narrow,
          2 * boost::math::cdf(boost::math::complement(t, std::abs(estimate) / se)),
          method};
}

}  // namespace

Shift two_sample_shift(std::span<const double> a, std::span<const double> b, double alpha) {
  if (a.size() < 2 || b.size() < 2) return {nan, nan, nan, nan, nan, nan, ""};
  if (std::min(a.size(), b.size()) >= permutation_min) {
    std::vector<double> minus(a.begin(), a.end());
    for (double& x : minus) x = -x;
    return rank_shift(Sums({b.begin(), b.end()}, std::move(minus), false), rank_sum_null(a.size(), b.size()),
                      alpha, 1);
  }
  const MeanVariance ma = moments(a), mb = moments(b);
  const double va = ma.variance / ma.n, vb = mb.variance / mb.n;
  const double df = (va + vb) * (va + vb) / (va * va / (ma.n - 1) + vb * vb / (mb.n - 1));
  return t_shift(mb.mean - ma.mean, std::sqrt(va + vb), df, alpha, "Welch");
}

Shift paired_shift(std::span<const double> differences, double alpha) {
  if (differences.size() < 2) return {nan, nan, nan, nan, nan, nan, ""};
  if (differences.size() >= signed_permutation_min) {
    std::vector<double> d(differences.begin(), differences.end());
    return rank_shift(Sums(d, d, true), signed_rank_null(d.size()), alpha, 0.5);
  }
  const MeanVariance m = moments(differences);
  return t_shift(m.mean, std::sqrt(m.variance / m.n), m.n - 1, alpha, "paired t");
}

}  // namespace assay::verdict
