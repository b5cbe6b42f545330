// SPDX-License-Identifier: Apache-2.0
// Slow blocks of the screening confirm a deficit only if chance does not explain them.
#include <gmock/gmock.h>

#include "base/random.hpp"
#include "tests/unit/verdict/fleet.hpp"
#include "verdict/retest/result.hpp"

namespace assay {
namespace {

using namespace fabricate;

/// Samples of all parts that are slower by `gap` with the probability `share`, in five blocks over 100 s.
results::Results with_two_states(std::uint64_t seed, double share, double gap, int samples) {
  auto fleet = Fleet::of(24, 0.001, seed);
  fleet.noise = 0.001;
  fleet.samples = samples, fleet.blocks = 5, fleet.block_s = 25;
  auto r = fleet.run();
  const RandomStream random(seed, "two states");
  auto& values = r.cases.front().metrics.front().values;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (random.uniform(i) < share) values[i] *= 1 - gap;
  return r;
}

TEST(VerdictLasting, BlocksOfSamplesWithTwoStatesConfirmNothing) {
  std::size_t suspects = 0;
  for (std::uint64_t seed = 1; seed <= 16; ++seed)
    for (const auto& [share, samples] : {std::pair(0.3, 15), std::pair(0.2, 5)}) {
      const auto v = judge(with_two_states(seed, share, 0.05, samples));
      EXPECT_EQ(count_severity(v, "FAIL"), 0U) << seed << " " << share;
      suspects += count_severity(v, "WARN");
    }
  EXPECT_GT(suspects, 0U) << "no median fell into the slow state";
}

TEST(VerdictLasting, BlocksCountInAnyOrder) {
  verdict::Lasting low;
  for (const double from : {80.0, 0.0, 40.0}) low.add({1, from, from + 5}, from != 40);
  EXPECT_EQ(low.blocks, 2U);
  EXPECT_EQ(low.of, 3U);
  EXPECT_EQ(low.span_s, 85);
}

TEST(VerdictLasting, APartThatIsSlowThroughoutFails) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    auto fleet = Fleet::of(24, 0.001, seed);
    fleet.samples = 5, fleet.blocks = 5, fleet.block_s = 25;
    fleet.rate[7] *= 0.95;
    const auto r = fleet.run();
    const auto v = judge(r);
    ASSERT_FALSE(v.findings.empty());
    EXPECT_EQ(v.findings.front().confirmed_by, "blocks") << seed;
    EXPECT_EQ(state_of(r, v, "node7"), "FAIL");
  }
}

TEST(VerdictLasting, TheIntervalOfADeficitLiesBeyondTheThreshold) {
  std::size_t warned = 0;
  for (std::uint64_t seed = 1; seed <= 16; ++seed) {
    auto fleet = Fleet::of(32, 0.0005, seed);
    fleet.noise = 0.01;
    fleet.samples = 9, fleet.block_s = 35;
    fleet.rate[5] *= 0.967;  // the threshold is 3 %, the error of a median 0.4 %
    const auto v = judge(fleet.run());
    for (const auto& f : v.findings) {
      EXPECT_TRUE(f.severity != "FAIL" || *f.ci_low > 0.03) << f.text;
      warned += f.severity == "WARN" ? 1 : 0;
    }
  }
  EXPECT_GT(warned, 8U);
}

}  // namespace
}  // namespace assay
