// SPDX-License-Identifier: Apache-2.0
// Statistics that a few bad values cannot bend, and tests with a known error rate. Pure functions. Unless
// said otherwise the input holds finite values only (throws Error(internal) for none where one is needed),
// higher is better, and "slow" means low; work on log(rate) so that differences are relative.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace assay {

// ---- One population: who does not belong to it
// ----------------------------------------------------------------------

/// Centre and scale of the bulk. `kept`: values that formed it.
struct RobustFit {
  double centre = 0, scale = 0;
  std::size_t kept = 0;
};

/// The univariate reweighted minimum covariance determinant: start from the shortest half (Rousseeuw & Leroy
/// 1987), then four rounds of mean and deviation over the values within 3 scales, the deviation times 1.0136
/// so that a normal sample gives its sigma. The scale is never under `floor`, so that equal values do not
/// divide by zero. O(N log N).
RobustFit robust_fit(std::span<const double> values, double floor = 1e-6);

/// (value - centre) / (scale sqrt(1 + 1/kept)): how far a further value of the same population would lie out.
double robust_score(double value, const RobustFit& fit) noexcept;

/// P(a given entity of a healthy normal population of n scores `score` or lower), score from robust_fit over
/// all n. From a Monte-Carlo table (robust.cpp); n >= 24, smaller n are treated as 24.
double robust_p_value(double score, std::size_t n);
/// The critical k: P(the lowest of n healthy scores < -k) = alpha.
double robust_critical(std::size_t n, double alpha);

/// How much heavier than normal the fast tail is: mean of the fastest 2 % (at least 3) over its normal
/// expectation. A compact cluster of fast values (>= 4 %, or 3 far from all others) is a population, not a
/// tail, and is left out; a single value counts as three times the first below the tail at most. Only the
/// fast side may set the tail, because faults are slow. `scores` in any order, at least 8 of them (1 for
/// fewer).
double fast_tail_ratio(std::span<const double> scores);
/// The same as a factor for thresholds: 1 when the ratio is below 1.25 or n < 32.
double fast_tail_inflation(std::span<const double> scores);

/// One suspect of a small population, by the deletion t (externally studentised residual): its distance from
/// the mean of the others in their own deviations, t with n-2 degrees of freedom.
struct DeletionOutlier {
  std::size_t index = 0;  ///< into the values
  double t = 0;
  double p = 1;          ///< Bonferroni over the values and n/4 peels: those beyond add nothing to the error
  double deviation = 0;  ///< of the others
  std::size_t rest = 0;  ///< how many others
};
/// The peels that the p of n values counts as tests.
std::size_t counted_peels(std::size_t n) noexcept;
/// The slowest of n values (some dozens at most), peeled off one by one while most are left (of fewer than 8,
/// two thirds), each against those that remain: all of them down to the last whose p is <= alpha. n >= 4;
/// fewer give none.
std::vector<DeletionOutlier> slow_by_deletion(std::span<const double> values, double alpha,
                                              double floor = 1e-6);

/// The best cut of a population in two, by the distance of the means in pooled deviations.
struct Split {
  double distance = 0;  ///< D = (mean_high - mean_low) / pooled deviation; 0 when the population is too small
  double cut = 0;       ///< low: value < cut
  double mean_low = 0, mean_high = 0;
  std::size_t low = 0, high = 0;  ///< how many
};
/// Only cuts that leave `least` on either side are considered (0: max(3, 4 % of N)); fewer than twice that
/// have none. With the default a distance over 6 is two populations, whatever the shape of one (<= 1 % false
/// under normal, t3, t4, uniform, log-normal for N >= 32); with a `least` of 1 it may as well be one value
/// that lies apart.
Split best_split(std::span<const double> values, double floor = 1e-6, std::size_t least = 0);

/// Where to cut sorted values into `clusters` parts: always the cut that takes most from the squares within,
/// all settled after each. Positions (of the first value above a cut), ascending; fewer where there is
/// nothing left to take.
std::vector<std::size_t> cluster_cuts(std::span<const double> sorted, std::size_t clusters);

// ---- Location, lines, shifts
// ----------------------------------------------------------------------------------------

struct Line {
  double intercept = 0, slope = 0;  ///< y = intercept + slope * x
  double scale = 0;                 ///< 1.4826 MAD of the residuals
  double slope_error = 0;           ///< standard error of the slope
};
/// y over x by iterated least squares with Tukey's biweight (c = 4.685); the start is a line through the
/// medians of the outer thirds, so that neither few wild y nor few wild x decide. All x equal: slope 0.
Line robust_line(std::span<const double> x, std::span<const double> y);

/// The median of (v_i + v_j)/2, i <= j. Exact up to 2000 values, of a fixed sample of pairs beyond.
double hodges_lehmann(std::span<const double> values);
/// The median of b_j - a_i: how much b lies above a. Exact up to 4e6 pairs, of a fixed sample of pairs
/// beyond.
double hodges_lehmann(std::span<const double> a, std::span<const double> b);

struct Interval {
  double low = 0, high = 0;
};
/// Two-sided interval of the centre of symmetry (Wilcoxon signed ranks): exact for n <= 50, normal beyond.
/// Infinite when n is too small for the confidence (95 % needs 6).
Interval shift_interval(std::span<const double> differences, double confidence);
/// Two-sided interval of the shift of b over a (Wilcoxon rank sum): exact while a.size() * b.size() <= 2500,
/// normal beyond.
Interval shift_interval(std::span<const double> a, std::span<const double> b, double confidence);

/// One-sided Fisher: P(at least `hits` of `drawn` are marked | `marked` of `total` are).
double fisher_p(std::size_t hits, std::size_t drawn, std::size_t marked, std::size_t total);

// ---- Many tests
// -----------------------------------------------------------------------------------------------------

/// Fisher's combination of independent p-values: strong when several are small at once.
double fisher_combine(std::span<const double> p);
/// Adjusted p-values in the order given: reject where <= alpha. Holm holds the family-wise error.
std::vector<double> holm(std::span<const double> p);
/// Quantiles of the normal distribution and of Student's t.
double normal_quantile(double p);
double t_quantile(double p, double degrees);
double t_below(double t, double degrees);  ///< P(T <= t)

}  // namespace assay
