// SPDX-License-Identifier: Apache-2.0
// Populations that are wide, heavy-tailed or noisy: what healthy parts may be by chance is no fault, and no
// warning where many are.
#include <gmock/gmock.h>

#include <cmath>

#include "fleet.hpp"
#include "measure/robust.hpp"

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
