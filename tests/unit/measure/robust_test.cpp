// SPDX-License-Identifier: Apache-2.0
// The statistics against values worked out by hand or by other programs (named), and their error rates by
// simulation.
#include "measure/robust.hpp"
#include "measure/spread_prior.hpp"
#include "measure/table_place.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "base/error.hpp"
#include "tests/support/clopper_pearson.hpp"

namespace assay {
namespace {

std::vector<double> normal(std::size_t n, std::mt19937_64& g, double sigma = 1) {
  std::normal_distribution<double> d(0, sigma);
  std::vector<double> v(n);
  for (double& x : v) x = d(g);
  return v;
}

TEST(RobustFit, GivesMeanAndSigmaOfANormalAndIgnoresATenthOfBadOnes) {
  std::mt19937_64 g(1);
  auto v = normal(4000, g, 0.01);
  const auto clean = robust_fit(v);
  EXPECT_NEAR(clean.centre, 0, 0.0005);
  EXPECT_NEAR(clean.scale, 0.01, 0.0005);
  for (std::size_t i = 0; i < 400; ++i) v[i] -= 0.08;
  const auto bad = robust_fit(v);
  EXPECT_NEAR(bad.centre, clean.centre, 0.0005);
  EXPECT_NEAR(bad.scale, clean.scale, 0.0005);
  EXPECT_LT(bad.kept, 3650U);
}

TEST(RobustFit, EqualValuesHaveTheFloorAsScale) {
  const auto fit = robust_fit(std::vector(30, 5.0), 1e-3);
  EXPECT_EQ(fit.centre, 5.0);
  EXPECT_EQ(fit.scale, 1e-3);
  EXPECT_EQ(fit.kept, 30U);
  EXPECT_THROW(robust_fit({}), Error);
}

TEST(RobustScore, ErrorRateOfAHealthyPopulationIsTheNominalOne) {
  std::mt19937_64 g(2);
  for (const std::size_t n : {24U, 40U, 64U, 300U}) {
    const double k = robust_critical(n, 0.05);
    std::size_t alarms = 0, runs = 600000 / n;
    if (runs > 4000) runs = 4000;
    for (std::size_t r = 0; r < runs; ++r) {
      const auto v = normal(n, g);
      const auto fit = robust_fit(v);
      alarms += robust_score(*std::min_element(v.begin(), v.end()), fit) < -k ? 1 : 0;
    }
    EXPECT_GT(clopper_pearson_upper(alarms, runs, 0.999), 0.05) << n;
    EXPECT_LT(clopper_pearson_lower(alarms, runs, 0.999), 0.05) << n;
  }
}

TEST(RobustScore, CriticalAndPValueAgreeAndGrowWithTheRun) {
  for (const std::size_t n : {24U, 64U, 1024U, 100000U}) {
    const double k = robust_critical(n, 0.01);
    EXPECT_NEAR(1 - std::pow(1 - robust_p_value(-k, n), static_cast<double>(n)), 0.01, 1e-6);
  }
  // The published values of this method: 4.1 at 32, 3.9 at 64, 4.0 at 256, 4.3 at 1024.
  EXPECT_NEAR(robust_critical(32, 0.01), 4.1, 0.15);
  EXPECT_NEAR(robust_critical(64, 0.01), 3.9, 0.1);
  EXPECT_NEAR(robust_critical(256, 0.01), 4.0, 0.1);
  EXPECT_NEAR(robust_critical(1024, 0.01), 4.3, 0.1);
  EXPECT_GT(robust_critical(100000, 0.01), 5.0);
}

TEST(FastTail, OnlyAHeavyFastTailInflates) {
  std::mt19937_64 g(3);
  auto v = normal(500, g);
  EXPECT_EQ(fast_tail_inflation(v), 1);
  auto slow = v;
  for (std::size_t i = 0; i < 20; ++i) slow[i] = -30;
  EXPECT_EQ(fast_tail_inflation(slow), 1);
  auto cluster = v;
  for (std::size_t i = 0; i < 60; ++i) cluster[i] = 12 + 0.1 * v[i];
  EXPECT_EQ(fast_tail_inflation(cluster), 1);
  auto heavy = v;
  for (std::size_t i = 0; i < 10; ++i) heavy[i] = 4 + static_cast<double>(i);
  EXPECT_GT(fast_tail_inflation(heavy), 2);
}

TEST(FastTail, FewFarValuesAreNoTail) {
  std::mt19937_64 g(5);
  std::normal_distribution<double> d;
  std::vector<double> v(130);
  for (double& x : v) x = d(g);
  const double healthy = fast_tail_ratio(v);
  for (int i = 0; i < 5; ++i) v[static_cast<std::size_t>(i)] = 33 + 0.3 * i;  // fewer than 4 %
  EXPECT_NEAR(fast_tail_ratio(v), healthy, 0.3);
  v[0] = 10;  // and one in between
  v[1] = v[2] = 77.6;
  v[3] = 76;
  v[4] = 0;
  EXPECT_LT(fast_tail_ratio(v), 2 * healthy);
  v[0] = 33;
  for (std::size_t i = 1; i < 5; ++i) v[i] = 0;  // one wild value
  EXPECT_LT(fast_tail_ratio(v), 3);
}

TEST(DeletionT, NamesTheSlowAndHoldsItsErrorRate) {
  // 8 values by hand: the others of the first have mean 10, deviation sqrt(4/6); t = -3/(0.8165 sqrt(8/7)).
  const std::vector v{7.0, 9.0, 11.0, 10.0, 10.0, 9.0, 11.0, 10.0};
  const auto found = slow_by_deletion(v, 0.2);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].index, 0U);
  EXPECT_NEAR(found[0].t, -3 / (std::sqrt(4.0 / 6) * std::sqrt(8.0 / 7)), 1e-9);
  EXPECT_NEAR(found[0].p, 16 * t_below(found[0].t, 6), 1e-12);
  EXPECT_TRUE(slow_by_deletion(std::vector{1.0, 2.0, 3.0}, 0.9).empty());

  std::mt19937_64 g(4);
  std::size_t alarms = 0;
  for (int r = 0; r < 4000; ++r) alarms += slow_by_deletion(normal(8, g), 0.05).empty() ? 0 : 1;
  EXPECT_LT(clopper_pearson_lower(alarms, 4000, 0.999), 0.05);
  EXPECT_GT(alarms, 40U);  // and it does test something
}

TEST(DeletionT, TwoSlowOnesDoNotHideEachOther) {
  std::vector v{9.0, 9.01, 10.0, 10.01, 9.99, 10.02, 9.98, 10.0, 10.01, 9.99};
  const auto found = slow_by_deletion(v, 0.01);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].index, 0U);
  EXPECT_EQ(found[1].index, 1U);
}

TEST(DeletionT, FastValuesBeyondDoubtHideNoSlowOne) {
  std::vector<double> v = {0.001, -0.002, 0.0, 0.002, -0.001, 0.001, -0.08, 0.30, 0.28};
  const auto found = slow_by_deletion(v, 0.001);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].index, 6U);
}

TEST(ClusterCuts, AreWhereTheClustersEnd) {
  const std::vector<double> v = {0, 1, 2, 30, 31, 32, 33, 90, 91};
  EXPECT_EQ(cluster_cuts(v, 3), (std::vector<std::size_t>{3, 7}));
  EXPECT_EQ(cluster_cuts(v, 2), (std::vector<std::size_t>{7}));
  EXPECT_TRUE(cluster_cuts(std::vector<double>{5, 5, 5}, 3).empty());
}

TEST(TablePlace, BetweenTheRowsAndNotBeyondThem) {
  struct Row {
    double n;
  };
  const std::array<Row, 3> rows = {{{10}, {20}, {80}}};
  EXPECT_EQ(place_in(rows, 40.0).row, 1U);
  EXPECT_NEAR(place_in(rows, 40.0).linear, 1.0 / 3, 1e-12);
  EXPECT_NEAR(place_in(rows, 40.0).logarithmic, 0.5, 1e-12);
  EXPECT_EQ(place_in(rows, 5.0).linear, 0);
  EXPECT_EQ(place_in(rows, 500.0).linear, 1);
  EXPECT_EQ(place_in(rows, 500.0).row, 1U);
}

TEST(SpreadPool, EqualSpreadsAreKnownFromAllAndUnequalOnesFromFew) {
  std::mt19937_64 g(21);
  // 40 populations of 12 that spread alike, and 40 whose true variances are 1 / (chi-square with 6 degrees /
  // 6).
  SpreadPool equal, unequal;
  std::chi_squared_distribution<double> own(11), between(6);
  for (int i = 0; i < 40; ++i) {
    equal.add(4e-6 * own(g) / 11, 11);
    unequal.add(6 / between(g) * own(g) / 11, 11);
  }
  EXPECT_NEAR(std::log(equal.prior(6, 48).variance / 4e-6), 0, 0.25);
  EXPECT_GT(equal.prior(6, 48).degrees, 20);
  EXPECT_GT(unequal.prior(6, 48).degrees, 2.5);
  EXPECT_LT(unequal.prior(6, 48).degrees, 16);
  EXPECT_EQ(equal.prior(41, 48).degrees, 0);
}

TEST(BestSplit, FindsTwoPopulationsAndNotOne) {
  std::mt19937_64 g(5);
  auto v = normal(64, g);
  EXPECT_LT(best_split(v).distance, 6);
  for (std::size_t i = 0; i < 16; ++i) v[i] -= 10;
  const auto split = best_split(v);
  EXPECT_GT(split.distance, 6);
  EXPECT_EQ(split.low, 16U);
  EXPECT_EQ(split.high, 48U);
  EXPECT_NEAR(split.mean_high - split.mean_low, 10, 1);
  for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(v[i] < split.cut, i < 16);
  EXPECT_EQ(best_split(std::vector{1.0, 2.0, 9.0, 9.1, 9.2}).distance, 0);
  // Two are fewer than the least minority of three.
  EXPECT_LT(best_split(std::vector{1.0, 1.1, 9.0, 9.1, 9.2, 9.3, 9.1, 9.15}).distance, 6);
}

TEST(RobustLine, IgnoresOutliersOnBothAxes) {
  std::mt19937_64 g(6);
  std::vector<double> x, y;
  const auto e = normal(100, g, 0.001);
  for (std::size_t i = 0; i < 100; ++i) {
    x.push_back(0.001 * static_cast<double>(i));
    y.push_back(3 + 0.94 * x[i] + e[i]);
  }
  for (std::size_t i = 0; i < 10; ++i) y[i * 9] -= 0.2;
  x[50] = 5;
  const auto line = robust_line(x, y);
  EXPECT_NEAR(line.slope, 0.94, 0.02);
  EXPECT_NEAR(line.intercept, 3, 0.001);
  EXPECT_NEAR(line.scale, 0.001, 0.0005);
  EXPECT_LT(line.slope_error, 0.02);
  const auto flat = robust_line(std::vector(5, 2.0), std::vector{1.0, 2.0, 3.0, 2.0, 2.0});
  EXPECT_EQ(flat.slope, 0);
  EXPECT_NEAR(flat.intercept, 2, 1e-6);
}

TEST(HodgesLehmann, ByHand) {
  // Walsh averages of 1 2 6: 1 1.5 2 3.5 4 6, their median 2.75. Differences of {1,2} and {4,8}: 2 3 6 7.
  EXPECT_DOUBLE_EQ(hodges_lehmann(std::vector{1.0, 2.0, 6.0}), 2.75);
  EXPECT_DOUBLE_EQ(hodges_lehmann(std::vector{1.0, 2.0}, std::vector{4.0, 8.0}), 4.5);
}

TEST(ShiftInterval, ExactForFewValues) {
  const std::vector d{1.0, 2.0, 3.0, 4.0, 5.0, 6.0};
  const auto all = shift_interval(d, 0.95);  // 2/64 = 0.03125 outside: all Walsh averages
  EXPECT_EQ(all.low, 1);
  EXPECT_EQ(all.high, 6);
  EXPECT_TRUE(std::isinf(shift_interval(std::vector{1.0, 2.0, 3.0, 4.0, 5.0}, 0.95).low));
  // 4 against 4: 2/70 = 0.0286 lies outside the extreme differences.
  const auto two = shift_interval(std::vector{0.0, 1.0, 2.0, 3.5}, std::vector{4.0, 5.0, 6.0, 7.0}, 0.95);
  EXPECT_EQ(two.low, 0.5);
  EXPECT_EQ(two.high, 7);
}

TEST(ShiftInterval, CoversTheTruthAsOftenAsItSays) {
  std::mt19937_64 g(7);
  std::size_t one = 0, two = 0, large = 0;
  for (int r = 0; r < 1000; ++r) {
    const auto a = normal(12, g), b = normal(10, g), c = normal(80, g);
    const auto i = shift_interval(a, 0.9), k = shift_interval(a, b, 0.9), l = shift_interval(c, 0.9);
    one += i.low <= 0 && 0 <= i.high ? 1 : 0;
    two += k.low <= 0 && 0 <= k.high ? 1 : 0;
    large += l.low <= 0 && 0 <= l.high ? 1 : 0;
  }
  for (const auto covered : {one, two, large}) {
    EXPECT_GT(clopper_pearson_upper(covered, 1000, 0.999), 0.9);
    EXPECT_LT(covered, 950U);
  }
}

TEST(Fisher, ByHand) {
  // All 3 drawn are among 3 marked of 6: 1/20. At least 2: 1/20 + 9/20.
  EXPECT_NEAR(fisher_p(3, 3, 3, 6), 0.05, 1e-12);
  EXPECT_NEAR(fisher_p(2, 3, 3, 6), 0.5, 1e-12);
  EXPECT_NEAR(fisher_p(0, 3, 3, 6), 1, 1e-12);
}

TEST(ManyTests, HolmByHand) {
  const std::vector p{0.01, 0.04, 0.03};
  const auto h = holm(p);
  EXPECT_NEAR(h[0], 0.03, 1e-12);
  EXPECT_NEAR(h[1], 0.06, 1e-12);
  EXPECT_NEAR(h[2], 0.06, 1e-12);
}

TEST(ClopperPearson, KnownValues) {
  EXPECT_NEAR(clopper_pearson_upper(0, 100), 1 - std::pow(0.05, 0.01), 1e-9);  // the rule of three, exactly
  EXPECT_EQ(clopper_pearson_lower(0, 100), 0);
  EXPECT_EQ(clopper_pearson_upper(5, 5), 1);
  EXPECT_EQ(clopper_pearson_upper(0, 0), 1);
  // tables of the beta distribution
  EXPECT_NEAR(clopper_pearson_upper(3, 100), 0.0757, 5e-4);
  EXPECT_NEAR(clopper_pearson_lower(3, 100), 0.00823, 5e-4);
}

TEST(Combine, FisherOfIndependentValues) {
  // -2 (ln 0.05 + ln 0.05) = 11.98, chi-square with 4 degrees: 0.0175.
  EXPECT_NEAR(fisher_combine(std::vector{0.05, 0.05}), 0.01748, 1e-5);
  EXPECT_NEAR(fisher_combine(std::vector{0.3}), 0.3, 1e-12);
  EXPECT_EQ(fisher_combine(std::vector<double>{}), 1);
  EXPECT_GT(fisher_combine(std::vector{0.0, 1.0}), 0);
}

}  // namespace
}  // namespace assay
