// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "suites/burn/burn_metrics.hpp"
#include "suites/burn/burn_plan.hpp"
#include "suites/burn/burn_suite.hpp"
#include "suites/burn/schedule.hpp"
#include "tests/unit/gemm_memory_fakes.hpp"

namespace assay::burn {
namespace {

TEST(BurnPlan, AllThreadsOfARankFillItsMemory) {
  const BurnSuite suite;
  Config config = fakes::config_of(suite, Level::soak);
  config.duration_s = 8 * 3600;
  const Topology topology = fakes::cluster({1, 2, 2, 64});  // 2 ranks of 64 threads
  EXPECT_DOUBLE_EQ(fill_rate(topology), 1e10);
  const auto cases = suite.plan({config, topology, std::uint64_t{700} << 30, 1});
  const Case* c = fakes::find(cases, "mixed-together");
  ASSERT_NE(c, nullptr);
  EXPECT_LT(c->overhead_seconds, 160);
  EXPECT_DOUBLE_EQ(fill_rate(fakes::cluster({1, 64, 1, 2})), 5e8) << "a thread's rate, and no less";
  EXPECT_DOUBLE_EQ(fill_rate(fakes::cluster({1, 1, 1, 4})), 2e9);
  Topology gpus = fakes::cluster({1, 1, 1, 4});
  gpus.device_kind = "cuda";
  EXPECT_DOUBLE_EQ(fill_rate(gpus), 1e11) << "in the plan and in the run";
}

/// A segment of 30 min leaves four minutes for retests.
TEST(BurnPlan, WhatIsMeasuredAgainIsNoSecondSoak) {
  const BurnSuite suite;
  Config config = fakes::config_of(suite, Level::soak, {{"burn.pulse", {"1"}}});
  config.duration_s = 1800;
  const auto cases = suite.plan({config, fakes::cluster({1, 2, 1, 2}), std::uint64_t{4} << 30, 1});
  const Case* burn = fakes::find(cases, "mixed-together");
  ASSERT_NE(burn, nullptr);
  EXPECT_DOUBLE_EQ(burn->seconds, 540);
  EXPECT_EQ(burn->retest_seconds, most_retest_s);
  const Case* pulses = fakes::find(cases, "pulse-1000ms-d50-together");
  ASSERT_NE(pulses, nullptr);
  EXPECT_EQ(pulses->retest_seconds, pulses->seconds) << "the train is the same";
}

/// A NaN of a required metric makes its case an error.
TEST(BurnMetrics, APulseMayBeMissed) { EXPECT_FALSE(metrics().of("pulse", "throughput").required); }

TEST(BurnSchedule, RanksBeginOneAfterTheOtherAndBurnEquallyLong) {
  constexpr double duration = 100, ramp = 10;
  const Span common = all_burn(duration, ramp);
  double last = -1;
  for (int rank = 0; rank < 8; ++rank) {
    const Span span = staggered(rank, 8, duration, ramp);
    EXPECT_GT(span.begin_s, last);
    EXPECT_DOUBLE_EQ(span.end_s - span.begin_s, duration - ramp);
    EXPECT_LE(span.begin_s, common.begin_s);
    EXPECT_GE(span.end_s, common.end_s);
    EXPECT_LE(span.end_s, duration);
    last = span.begin_s;
  }
  EXPECT_DOUBLE_EQ(staggered(3, 8, duration, ramp).begin_s, 3.75);
}

TEST(BurnSchedule, WorkCountsInTheWindowsThatItFellInto) {
  const Work work[] = {{-1, 1, 8}, {1.5, 2.5, 6}, {3, 9, 60}};
  const auto rates = window_rates(work, {0, 4}, 4);
  EXPECT_EQ(rates, (std::vector<double>{4, 3, 3, 10}));
  EXPECT_EQ(window_rates({}, {0, 4}, 2), (std::vector<double>{0, 0}));
  const auto halves = window_rates(work, {0, 4}, 8);
  EXPECT_EQ(halves[0], 4);
  EXPECT_EQ(halves[2], 0);
  EXPECT_EQ(halves[3], 6);
}

TEST(BurnSchedule, WorkHasARateInEveryWindow) {
  // Two all-reduces: one of 8 bytes in [0.5, 2.5), one of 3 bytes in [6, 7).
  const std::vector<Work> sums{{0.5, 2.5, 8}, {6, 7, 3}};
  EXPECT_EQ(rates_of_work(sums, {0, 8}, 8), (std::vector<double>{4, 4, 4, 4, 4, 4, 3, 3}));
  EXPECT_EQ(rates_of_work(std::span(sums).subspan(1), {0, 8}, 2), (std::vector<double>{3, 3}));
  EXPECT_TRUE(std::isnan(rates_of_work({}, {0, 8}, 1)[0]));
}

TEST(BurnSchedule, TrainsGrowAndShrinkAndHaveFullPulses) {
  const PulseTrain train = make_train(2, 0.25, 30, 3);
  EXPECT_EQ(train.pulses, 60);
  EXPECT_EQ(train.ramp, 6);
  EXPECT_DOUBLE_EQ(train.begin_s(4), 2);
  EXPECT_DOUBLE_EQ(train.end_s(4), 2.125);
  EXPECT_DOUBLE_EQ(train.shortest_phase_s(), 0.125);
  EXPECT_DOUBLE_EQ(make_train(2, 0.75, 30, 3).shortest_phase_s(), 0.125);
  int full = 0;
  for (int k = 0; k < train.pulses; ++k) {
    EXPECT_GT(train.amplitude(k), 0);
    EXPECT_DOUBLE_EQ(train.amplitude(k), train.amplitude(train.pulses - 1 - k));
    if (k > 0 && k < train.pulses / 2) {
      EXPECT_GE(train.amplitude(k), train.amplitude(k - 1));
      EXPECT_LE(train.amplitude(k) - train.amplitude(k - 1), 1.0 / 6);
    }
    full += train.full(k);
    EXPECT_EQ(train.full(k), train.amplitude(k) == 1);
  }
  EXPECT_EQ(full, train.full_pulses());
  // However short, it is ramped and has pulses to look at.
  const PulseTrain shortest = make_train(0.1, 0.5, 1, 0);
  EXPECT_EQ(shortest.pulses, 11);
  EXPECT_EQ(shortest.ramp, 3);
}

TEST(BurnSchedule, WeakPulsesWorkForTheirShareAndDevicesTakeTurns) {
  const PulseTrain train = make_train(1, 0.5, 20, 3);
  for (const int k : {0, 1, 2, 10, 19}) {
    int working = 0, looks = 0, most = 0, least = 100;
    for (double t = train.begin_s(k); t < train.end_s(k); t += 1e-3, ++looks) {
      int now = 0;
      for (int device = 0; device < 8; ++device) {
        const double rest = train.rest_s(k, t, device / 8.0);
        ASSERT_GE(rest, 0);
        // After that rest it works.
        if (rest > 0) {
          ASSERT_LT(train.rest_s(k, t + rest + 1e-9, device / 8.0), 1e-12);
        }
        now += rest == 0;
      }
      working += now;
      most = std::max(most, now);
      least = std::min(least, now);
    }
    EXPECT_NEAR(working / 8.0 / looks, train.amplitude(k), 0.05) << k;
    EXPECT_LE(most - least, 1) << "the devices draw evenly in pulse " << k;
  }
}

}  // namespace
}  // namespace assay::burn
