// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "measure/sampler.hpp"
#include "measure/statistics.hpp"

namespace assay {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TEST(Statistics, MedianOfOddEvenAndEmpty) {
  EXPECT_EQ(median(std::vector{3.0, 1.0, 2.0}), 2.0);
  EXPECT_EQ(median(std::vector{4.0, 1.0, 2.0, 3.0}), 2.5);
  EXPECT_TRUE(std::isnan(median(std::vector<double>{})));
}

TEST(Statistics, NotTakenIsLeftOut) {
  EXPECT_EQ(median(std::vector{nan, 1.0, nan, 3.0}), 2.0);
  EXPECT_TRUE(std::isnan(median(std::vector{nan})));
}

TEST(Statistics, QuantilesInterpolate) {
  const std::vector v{0.0, 10.0, 20.0, 30.0, 40.0};
  EXPECT_DOUBLE_EQ(quantile(v, 0.0), 0.0);
  EXPECT_DOUBLE_EQ(quantile(v, 0.1), 4.0);
  EXPECT_DOUBLE_EQ(quantile(v, 0.95), 38.0);
  EXPECT_DOUBLE_EQ(quantile(v, 1.0), 40.0);
}

TEST(Statistics, MadIsScaledToSigmaAndIgnoresOneOutlier) {
  EXPECT_DOUBLE_EQ(mad_sigma(std::vector{1.0, 2.0, 3.0, 4.0, 1000.0}), 1.4826);
  EXPECT_DOUBLE_EQ(median_standard_error(std::vector{1.0, 2.0, 3.0, 4.0, 5.0}),
                   1.2533 * 1.4826 / std::sqrt(5.0));
}

TEST(Statistics, IntervalIsInfiniteWithoutEnoughSamples) {
  EXPECT_TRUE(std::isinf(median_relative_ci(std::vector{1.0, 1.0})));
  EXPECT_EQ(median_relative_ci(std::vector{1.0, 1.0, 1.0}), 0.0);
}

Operation counting(std::uint64_t& repetitions, int& calls) {
  Operation op;
  op.run = [&](std::uint64_t k) {
    repetitions += k;
    ++calls;
    const double until = now_s() + 2e-6 * static_cast<double>(k);
    while (now_s() < until) {
    }
  };
  return op;
}

TEST(Sampler, AFaultOnPurposeIsInsideTheTimedRegion) {
  std::uint64_t repetitions = 0;
  int calls = 0, warmups = 0, timed = 0;
  SamplingPlan plan;
  plan.max_samples = 4;
  plan.min_samples = 4;
  plan.repetitions = 3;
  plan.warmup_seconds = 0;
  plan.fault = [&](double begin_s, std::uint64_t k, bool warmup) {
    EXPECT_LE(begin_s, now_s());
    EXPECT_TRUE(warmup || k == 3);
    ++(warmup ? warmups : timed);
    const double until = now_s() + 2e-3;
    while (now_s() < until) {
    }
    return 2.0;
  };
  Operation op = counting(repetitions, calls);
  for (const double s : sample(op, plan).seconds) EXPECT_GE(s, 2e-3);
  EXPECT_EQ(timed, 4);
  EXPECT_EQ(warmups + timed, calls);
  // Where the operation takes the time itself, the sample grows by the factor.
  op.timed_elsewhere = [] { return 5.0; };
  for (const double s : sample(op, plan).seconds) EXPECT_EQ(s, 10.0);
}

TEST(Sampler, StopsAtTheCountCap) {
  std::uint64_t repetitions = 0;
  int calls = 0;
  SamplingPlan plan;
  plan.max_samples = 7;
  plan.min_samples = 100;
  plan.max_seconds = 10;
  plan.warmup_seconds = 0;
  const auto series = sample(counting(repetitions, calls), plan);
  EXPECT_EQ(series.seconds.size(), 7u);
  EXPECT_EQ(series.start_s.size(), 7u);
  EXPECT_EQ(calls, 8) << "one warm-up and seven samples";
}

TEST(Sampler, BatchIsTheLeastThatGivesAHundredClockSteps) {
  std::uint64_t repetitions = 0;
  int calls = 0;
  SamplingPlan plan;
  plan.max_samples = 3;
  const auto series = sample(counting(repetitions, calls), plan);
  EXPECT_GE(2e-6 * static_cast<double>(series.repetitions + 1), 100 * clock_step_s() * 0.5);
  plan.repetitions = 20;
  EXPECT_EQ(sample(counting(repetitions, calls), plan).repetitions, 20u);
}

TEST(Sampler, TimeCapHoldsAndOneSampleIsAlwaysTaken) {
  Operation op;
  op.run = [](std::uint64_t k) {
    const double until = now_s() + 0.01 * static_cast<double>(k);
    while (now_s() < until) {
    }
  };
  SamplingPlan plan;
  plan.max_seconds = 0.001;
  const auto series = sample(op, plan);
  EXPECT_EQ(series.seconds.size(), 1u);
}

TEST(Sampler, StopsEarlyOnceTheMedianIsPrecise) {
  Operation op;
  op.run = [](std::uint64_t) {};
  op.timed_elsewhere = [] { return 1.0; };
  SamplingPlan plan;
  plan.min_samples = 5;
  plan.max_seconds = 5;
  EXPECT_EQ(sample(op, plan).seconds.size(), 5u);
}

TEST(Sampler, VerifiesEverySampleOutsideTheTimedRegion) {
  Operation op;
  std::vector<std::size_t> verified;
  op.run = [](std::uint64_t) {};
  op.verify = [&](std::size_t n) {
    const double until = now_s() + 0.002;
    while (now_s() < until) {
    }
    verified.push_back(n);
  };
  SamplingPlan plan;
  plan.max_samples = 4;
  plan.min_samples = 4;
  const auto series = sample(op, plan);
  EXPECT_EQ(verified, (std::vector<std::size_t>{0, 1, 2, 3}));
  EXPECT_LT(series.timed_s, 0.002);
  EXPECT_GE(series.verify_s, 0.008);
}

TEST(Sampler, AVoteOfOthersEndsTheSeries) {
  Operation op;
  int votes = 0;
  op.run = [](std::uint64_t) {};
  op.agree = [&](SampleVote vote) {
    if (++votes > 4) vote.stop = 1;
    return vote;
  };
  SamplingPlan plan;
  plan.min_samples = 1000;
  EXPECT_LT(sample(op, plan).seconds.size(), 10u);
}

TEST(Sampler, TheLeastPreciseRankDecidesWhenTheMedianIsPrecise) {
  Operation op;
  int votes = 0;
  op.run = [](std::uint64_t) {};
  op.timed_elsewhere = [] { return 1.0; };
  op.agree = [&](SampleVote vote) {
    if (++votes <= 40) vote.imprecise = 1;  // of another rank
    return vote;
  };
  SamplingPlan plan;
  plan.min_samples = 5;
  plan.warmup_seconds = 0;
  plan.max_seconds = 100;
  EXPECT_GT(sample(op, plan).seconds.size(), 30u);
  EXPECT_EQ(votes, 41) << "one more is enough";
  op.agree = [](SampleVote vote) {
    vote.imprecise = 1;
    return vote;
  };
  EXPECT_EQ(sample(op, plan).seconds.size(), plan.max_samples) << "a rank that is never precise";
}

TEST(Sampler, SamplesThatAreNotFiniteEndASeriesUnlessItIsOfATime) {
  Operation op;
  op.run = [](std::uint64_t) {};
  SamplingPlan plan;
  plan.max_samples = 50;
  plan.warmup_seconds = 0;
  plan.max_seconds = 1000;
  for (const double value : {0.0, nan, std::numeric_limits<double>::infinity()}) {
    op.timed_elsewhere = [&] { return value; };
    plan.relative_ci = 0.005;
    plan.min_samples = 5;
    EXPECT_EQ(sample(op, plan).seconds.size(), 5U) << value;
    plan.min_samples = 1;
    EXPECT_EQ(sample(op, plan).seconds.size(), 3U) << value;
    plan.relative_ci = 0;
    EXPECT_EQ(sample(op, plan).seconds.size(), 50U) << value;
  }
}

TEST(Sampler, TheTimeCapHoldsWhereSamplesBecomeSlow) {
  constexpr double slow_s = 0.02;
  int runs = 0, slow = 0;
  Operation op;
  op.run = [&](std::uint64_t) {
    if (++runs <= 400) return;
    ++slow;
    const double until = now_s() + slow_s;
    while (now_s() < until) {
    }
  };
  SamplingPlan plan;
  plan.min_samples = plan.max_samples = 100000;
  plan.warmup_seconds = 0;
  plan.repetitions = 1;
  plan.max_seconds = 0.1;
  sample(op, plan);
  EXPECT_LE(slow, 6) << "five fit, and one begins before their end";
}

TEST(Sampler, ASlowSampleOfAnyRankBringsTheNextVoteForward) {
  Operation op;
  op.run = [](std::uint64_t) {};
  for (const double share : {0.0, 0.25, 1.0}) {
    int votes = 0;
    op.agree = [&](SampleVote vote) {
      ++votes;
      vote.share = share;  // of the slowest rank
      return vote;
    };
    SamplingPlan plan;
    plan.max_samples = 400;
    plan.min_samples = 1000;
    plan.warmup_seconds = 0;
    plan.max_seconds = 1000;
    EXPECT_EQ(sample(op, plan).seconds.size(), 400u);
    if (share == 0) {
      EXPECT_LT(votes, 100) << "a tenth more at a time";
    } else {
      EXPECT_GE(votes, 400 * share) << share;
    }
  }
}

TEST(Sampler, BlocksCutTheSeriesEvenly) {
  Operation op;
  op.run = [](std::uint64_t) {};
  SamplingPlan plan;
  plan.max_samples = 6;
  plan.min_samples = 1000;
  EXPECT_EQ(sample(op, plan).block, (std::vector<std::int32_t>{0, 0, 1, 1, 2, 2}));
}

TEST(Random, CountersNotCallOrder) {
  const RandomStream a(1, "x"), b(1, "x"), c(2, "x"), d(1, "y");
  EXPECT_EQ(a.bits(5), b.bits(5));
  EXPECT_NE(a.bits(5), c.bits(5));
  EXPECT_NE(a.bits(5), d.bits(5));
  auto p = a.permutation(100);
  std::sort(p.begin(), p.end());
  for (std::size_t i = 0; i < p.size(); ++i) EXPECT_EQ(p[i], i);
}

}  // namespace
}  // namespace assay
