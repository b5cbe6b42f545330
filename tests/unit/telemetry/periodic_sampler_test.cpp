// SPDX-License-Identifier: Apache-2.0
#include "telemetry/periodic_sampler.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <vector>

#include "base/clock.hpp"

namespace assay {
namespace {

void wait_for(const std::atomic<int>& calls, int wanted) {
  const double until = now_s() + 30;
  while (calls < wanted && now_s() < until) usleep(1000);
  EXPECT_GE(calls, wanted);
}

TEST(PeriodicSampler, CallsAtOnceAndThenAtThePeriodThatItIsGiven) {
  std::vector<double> at;  // of the thread alone until the sampler is gone
  std::atomic<int> calls{0};
  const double begin = now_s();
  {
    const PeriodicSampler sampler([&] {
      at.push_back(now_s());
      return ++calls < 3 ? 0.001 : 0.05;
    });
    wait_for(calls, 6);
  }
  EXPECT_GE(at[5] - begin, 0.15) << "2 periods of 1 ms and 3 of 50 ms";
  const int last = calls;
  usleep(60'000);
  EXPECT_EQ(calls, last) << "no call after its end";
}

TEST(PeriodicSampler, DoesNotMakeUpForCallsThatWereMissed) {
  std::vector<double> at;
  std::atomic<int> calls{0};
  const double begin = now_s();
  {
    const PeriodicSampler sampler([&] {
      at.push_back(now_s());
      if (++calls == 1) usleep(100'000);  // five periods
      return 0.02;
    });
    wait_for(calls, 4);
  }
  EXPECT_GE(at[3] - begin, 0.139) << "two periods after the long call";
}

TEST(PeriodicSampler, EndsAtOnceInALongPeriod) {
  std::atomic<int> calls{0};
  auto sampler = std::make_unique<PeriodicSampler>([&] {
    ++calls;
    return 3600.0;
  });
  wait_for(calls, 1);
  const double begin = now_s();
  sampler.reset();
  EXPECT_LT(now_s() - begin, 60);
}

}  // namespace
}  // namespace assay
