// SPDX-License-Identifier: Apache-2.0
// One or two samples of a part: how parts differ stands for how samples do, and what is gross is named.
#include <gmock/gmock.h>

#include "fleet.hpp"
#include "verdict/retest/samples.hpp"

namespace assay {
namespace {

using namespace fabricate;
using ::testing::HasSubstr;

Fleet one_sample_each(std::size_t n, std::uint64_t seed) {
  auto fleet = Fleet::of(n, 0.005, seed);
  fleet.samples = fleet.blocks = 1;
  return fleet;
}

TEST(VerdictFewSamples, AGrossDeficitIsNamedFromOne) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    auto fleet = one_sample_each(22, seed);
    fleet.rate[7] /= 2.16;
    const auto v = judge(fleet.run());
    ASSERT_EQ(v.findings.size(), 1U) << seed;
    EXPECT_EQ(v.findings[0].name, "node7/cores0-1");
    EXPECT_EQ(v.findings[0].severity, "WARN");
    EXPECT_EQ(v.state, "WARN");
    EXPECT_EQ(v.findings[0].text.find("or such parts may differ"), std::string::npos);
  }
}

TEST(VerdictFewSamples, ARetestConfirmsTheFault) {
  auto fleet = one_sample_each(22, 3);
  fleet.rate[7] /= 2.16;
  auto r = fleet.run();
  fleet.blocks = 3;
  EXPECT_EQ(Fleet::run_retests(r, fleet), 1U);
  EXPECT_EQ(judge(r).state, "FAIL");
}

TEST(VerdictFewSamples, HealthyPartsWithOneSampleAreNotNamed) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    auto r = one_sample_each(22, seed).run();
    EXPECT_EQ(judge(r).state, "PASS") << seed << all_reasons(judge(r));
  }
}

/// Medians that repeat to 9 % at best, and one part that is `factor` times slower.
Fleet noisy(double factor, std::uint64_t seed) {
  auto fleet = Fleet::of(12, 0.005, seed);
  fleet.noise = 0.25;
  fleet.rate[7] /= factor;
  return fleet;
}

TEST(VerdictFewSamples, DeficitFarBeyondNoiseIsRetested) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const auto fleet = noisy(4, seed);
    auto r = fleet.run();
    EXPECT_EQ(judge(r).state, "WARN") << seed;
    EXPECT_EQ(Fleet::run_retests(r, fleet), 1U) << seed;
    const auto v = judge(r);
    EXPECT_EQ(v.state, "FAIL") << seed << all_reasons(v);
    EXPECT_EQ(count_severity(v, "FAIL"), 1U);
    EXPECT_EQ(v.findings[0].name, "node7/cores0-1");
  }
}

TEST(VerdictFewSamples, DeficitWithinNoiseIsNotRetested) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    for (const double factor : {1.0, 1.5}) {
      const auto fleet = noisy(factor, seed);
      auto r = fleet.run();
      EXPECT_EQ(Fleet::run_retests(r, fleet), 0U) << seed << " " << factor;
      EXPECT_EQ(count_severity(judge(r), "FAIL"), 0U) << seed << " " << factor;
    }
  }
}

TEST(VerdictFewSamples, LowerIsBetterMetric) {
  auto fleet = Fleet::of(22, 0.002);
  fleet.rate[4] *= 1.2;
  auto r = fleet.run();
  auto& m = first_case(r).metrics[0];
  m.name = "latency", m.unit = "s", m.better = results::Better::lower;
  const auto v = judge(r);
  ASSERT_EQ(v.findings.size(), 1U);
  EXPECT_THAT(v.findings[0].text, HasSubstr("%) slower than"));
}

TEST(VerdictFewSamples, BlocksThatTakeTurnsAreNoMoreThanTheirNumbers) {
  std::vector<verdict::TakenSample> samples;
  for (int i = 0; i < 12; ++i) samples.push_back({100.0 + i % 2, 10.0 * i, i % 2});
  const auto blocks = verdict::blocks_of(samples);
  ASSERT_EQ(blocks.size(), 2U);
  EXPECT_EQ(blocks[1].median, 101);
  EXPECT_EQ(blocks[1].first_t, 10);
  EXPECT_EQ(blocks[1].last_t, 110);
}

TEST(VerdictFewSamples, RetestsAloneMeasureNothing) {
  auto r = Fleet::of(8, 0.002).run();
  r.plan.clear();
  EXPECT_EQ(judge(r).state, "PASS");
  first_case(r).name += ".c1";
  const auto v = judge(r);
  EXPECT_EQ(v.state, "INCONCLUSIVE");
  EXPECT_THAT(all_reasons(v), HasSubstr("nothing was measured"));
}

}  // namespace
}  // namespace assay
