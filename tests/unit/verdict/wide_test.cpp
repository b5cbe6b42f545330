// SPDX-License-Identifier: Apache-2.0
// Populations that are wide, heavy-tailed or noisy: what healthy parts may be by chance is no fault, and no
// warning where many are.
#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "fleet.hpp"
#include "measure/robust.hpp"
#include "tests/support/clopper_pearson.hpp"
#include "verdict/abnormality.hpp"

namespace assay {
namespace {

using namespace fabricate;

TEST(VerdictWide, FiveDevicesFailOnlyWithALargeDeficit) {
  for (const double slow : {0.90, 0.70}) {
    auto fleet = Fleet::of(5, 0);
    fleet.name = "triad-alone";
    fleet.rate = {100e9, 101.5e9, 98e9, 99e9, slow * 100e9};
    auto r = fleet.run();
    EXPECT_EQ(Fleet::run_retests(r, fleet), 1U);
    EXPECT_EQ(judge(r).state, slow > 0.8 ? "WARN" : "FAIL") << slow << all_reasons(judge(r));
  }
}

TEST(VerdictWide, HeavyTailedPopulationHoldsTheErrorRate) {
  std::mt19937_64 g(11);
  std::student_t_distribution<double> t4(4);
  verdict::TailPool nothing;
  for (const std::size_t n : {8U, 20U, 64U, 256U}) {
    std::size_t alarms = 0, runs = n > 100 ? 600 : 2000;
    for (std::size_t r = 0; r < runs; ++r) {
      std::vector<double> v(n);
      for (double& x : v) x = 0.01 * t4(g);
      const auto a = verdict::abnormality(v);
      bool any = false;
      for (std::size_t i = 0; i < n; ++i) any = any || verdict::surely_abnormal(a, i, 0.01, nothing);
      alarms += any ? 1 : 0;
    }
    EXPECT_LT(clopper_pearson_lower(alarms, runs, 0.99), 0.01) << n;
  }
}

TEST(VerdictWide, BorrowedSpreadHoldsTheErrorRate) {
  // One of 12 at 20 scales of their spread: alone they often cannot tell, with the spread of others they can.
  std::mt19937_64 g(12);
  std::student_t_distribution<double> t4(4);
  verdict::TailPool nothing;
  const SpreadPrior known{1e-4 * 2, 48};
  std::size_t alarms = 0, alone = 0, lent = 0, runs = 2000;
  for (std::size_t r = 0; r < runs; ++r) {
    std::vector<double> v(12);
    for (double& x : v) x = 0.01 * t4(g);
    auto a = verdict::abnormality(v);
    verdict::moderate(a, v, known);
    bool any = false;
    for (std::size_t i = 0; i < v.size(); ++i) any = any || verdict::surely_abnormal(a, i, 0.01, nothing);
    alarms += any ? 1 : 0;
    v[3] = -0.20;
    auto slow = verdict::abnormality(v);
    alone += verdict::surely_abnormal(slow, 3, 0.001, nothing) ? 1 : 0;
    verdict::moderate(slow, v, known);
    lent += verdict::surely_abnormal(slow, 3, 0.001, nothing) ? 1 : 0;
  }
  EXPECT_LT(clopper_pearson_lower(alarms, runs, 0.99), 0.01) << alarms;
  EXPECT_LT(alone, runs * 85 / 100);
  EXPECT_GT(lent, runs * 95 / 100);
}

TEST(VerdictWide, TheBoundOfAFaultIsThatOfT4UnlessTheFastSideIsHeavierStill) {
  for (const std::size_t n : {48U, 100U, 300U}) {
    const double usual = verdict::heavy_critical(n, 3e-4, 1.0);
    // P(T < -x) = 3/x^4 far out, in units of t4; the robust deviation is 1.1 of them.
    EXPECT_NEAR(usual, std::pow(3 * static_cast<double>(n) / 3e-4, 0.25) / 1.1, 0.02 * usual) << n;
    EXPECT_EQ(verdict::heavy_critical(n, 3e-4, 1.7), usual) << n;
    EXPECT_GT(verdict::heavy_critical(n, 3e-4, 4.0), 2 * usual) << n;
  }
  // What lies 40 deviations out of 100 parts is found, however heavy the other side happened to be.
  std::mt19937_64 g(13);
  std::student_t_distribution<double> t4(4);
  const verdict::TailPool nothing;
  int found = 0;
  for (int r = 0; r < 200; ++r) {
    std::vector<double> v(100);
    for (double& x : v) x = 0.01 * t4(g);
    v[3] = -0.44;
    found += verdict::surely_abnormal(verdict::abnormality(v), 3, 3e-4, nothing) ? 1 : 0;
  }
  EXPECT_GE(found, 185);
}

/// Quantiles of Student's t with 4 degrees, `spread` wide, in random places.
Fleet heavy_fleet(std::size_t n, double spread) {
  Fleet fleet;
  for (std::size_t i = 0; i < n; ++i)
    fleet.rate.push_back(
        1e11 * std::exp(spread * t_quantile((static_cast<double>(i) + 0.5) / static_cast<double>(n), 4)));
  std::shuffle(fleet.rate.begin(), fleet.rate.end(), fleet.random);
  return fleet;
}

TEST(VerdictWide, AWidePopulationNeedsALargerDeficitToFail) {
  // By the same number of deviations.
  for (const double spread : {0.002, 0.015}) {
    auto fleet = heavy_fleet(16, spread);
    fleet.rate[5] = 1e11 * std::exp(-20 * spread);
    auto r = fleet.run();
    EXPECT_GE(Fleet::run_retests(r, fleet), 1U);
    const auto v = judge(r);
    EXPECT_EQ(v.state, spread < 0.005 ? "FAIL" : "WARN") << all_reasons(v);
  }
}

TEST(VerdictWide, ALargeDeficitWithinHeavyTailsIsANote) {
  for (const double deficit : {0.22, 0.45}) {
    auto fleet = heavy_fleet(400, 0.022);
    fleet.rate[5] = (1 - deficit) * 1e11;
    const auto v = judge(fleet.run());
    ASSERT_EQ(v.findings.size(), 1U) << all_reasons(v);
    EXPECT_EQ(v.findings[0].severity, deficit < 0.4 ? "INFO" : "WARN") << all_reasons(v);
    EXPECT_EQ(v.findings[0].name, "node5/cores0-1");
  }
}

TEST(VerdictWide, SixStandardErrorsOfANoisyMetricWarn) {
  for (const double deficit : {0.075, 0.13}) {
    auto fleet = Fleet::of(64, 0.001);
    fleet.noise = 0.045;  // of a median 1.6 %
    fleet.rate[5] *= 1 - deficit;
    const auto v = judge(fleet.run());
    EXPECT_EQ(count_severity(v, "WARN") > 0, deficit > 0.1) << all_reasons(v);
  }
}

}  // namespace
}  // namespace assay
