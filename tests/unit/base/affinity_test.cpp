// SPDX-License-Identifier: Apache-2.0
#include "base/affinity.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "base/system.hpp"

namespace assay {
namespace {

TEST(CpuMask, HoldsCpusBeyondAFixedSet) {
  const CpuMask mask({3, 1024, 5000});
  ASSERT_GE(8 * mask.bytes(), 5001U);
  EXPECT_EQ(CPU_COUNT_S(mask.bytes(), mask.get()), 3);
  for (const std::size_t cpu : {3, 1024, 5000})
    EXPECT_TRUE(CPU_ISSET_S(cpu, mask.bytes(), mask.get())) << cpu;
  EXPECT_FALSE(bind_thread(pthread_self(), {5000})) << "this machine has none";
  EXPECT_FALSE(bind_thread(pthread_self(), {}));
}

TEST(Affinity, AnyCpuWidensTheMaskOfThisThreadAndRestoresIt) {
  const std::vector<int> all = allowed_cpus();
  if (all.size() < 2) GTEST_SKIP() << "noise: one CPU";
  std::thread([&] {  // the mask of the test itself stays as it is
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(all.back()), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    const std::vector<int> bound{all.back()};
    {
      const AnyCpu any_cpu;
      const std::vector<int> wide = allowed_cpus();
      for (const int cpu : all) EXPECT_TRUE(std::find(wide.begin(), wide.end(), cpu) != wide.end()) << cpu;
      std::vector<int> started;
      std::thread([&] { started = allowed_cpus(); }).join();
      EXPECT_EQ(started, wide);
    }
    EXPECT_EQ(allowed_cpus(), bound);
  })
      .join();
}

}  // namespace
}  // namespace assay
