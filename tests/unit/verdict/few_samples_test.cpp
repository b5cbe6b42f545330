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

/// The samples of all parts vary by the same factors, as the rate of a shared server does.
results::Results with_common_noise(const Fleet& fleet) {
  auto r = fleet.run();
  auto& c = first_case(r);
  std::mt19937_64 random(fleet.seed);
  std::normal_distribution<double> off(0, 0.15);
  for (std::size_t s = 0; s < c.samples(); ++s) {
    const double factor = std::exp(off(random));
    for (std::size_t e = 0; e < c.entity.size(); ++e) c.metrics[0].values[e * c.samples() + s] *= factor;
  }
  return r;
}

TEST(VerdictFewSamples, NoiseThatAllPartsShareHidesNoSlowPart) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    auto fleet = Fleet::of(8, 0.003, seed);
    EXPECT_EQ(judge(with_common_noise(fleet)).state, "PASS") << seed;
    fleet.rate[3] *= 0.8;
    auto r = with_common_noise(fleet);
    EXPECT_EQ(Fleet::run_retests(r, fleet), 1U) << seed;
    const auto v = judge(r);
    ASSERT_FALSE(v.findings.empty()) << seed;
    EXPECT_EQ(v.findings[0].severity, "FAIL");
    for (const auto& f : v.findings)
      EXPECT_TRUE(f.severity == "INFO" || f.name == "node3/cores0-1") << seed << f.text;
  }
}

/// Three nodes, the last slow by `percent`.
Fleet of_three(double spread, double percent, std::uint64_t seed, double noise = 0.002) {
  auto fleet = Fleet::of(3, spread, seed);
  fleet.samples = 10;
  fleet.noise = noise;
  fleet.rate[2] *= 1 - percent / 100;
  return fleet;
}

TEST(VerdictFewSamples, OneOfThreeNodesIsToldWhereTheOthersAreAlike) {
  std::size_t told = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const auto v = judge(of_three(0.005, 15, seed).run());
    if (v.state != "WARN") continue;
    ++told;
    ASSERT_EQ(v.findings.size(), 1U) << all_reasons(v);
    EXPECT_EQ(v.findings[0].name, "node2/cores0-1");
    EXPECT_NEAR(*v.findings[0].deficit, 0.15, 0.03);
    EXPECT_FALSE(v.findings[0].confirmed);
  }
  EXPECT_GE(told, 38U);
  for (std::uint64_t seed = 1; seed <= 200; ++seed)
    for (const double noise : {0.002, 0.02, 0.1})
      EXPECT_EQ(find_kind(judge(of_three(0.02, 0, seed, noise).run()), "slow"), nullptr) << seed << noise;
  // Few samples, or two others that differ, do not tell; nor do three ranks of one node.
  auto few = of_three(0.005, 15, 1);
  few.samples = 6;
  EXPECT_EQ(judge(few.run()).state, "PASS");
  auto unlike = of_three(0.005, 15, 1);
  unlike.rate[1] *= 0.95;
  EXPECT_EQ(judge(unlike.run()).state, "PASS");
  // Where the nodes differ so much in other metrics, it is no more than usual.
  for (const double spread : {0.005, 0.04}) {
    auto r = of_three(0.005, 15, 1).run();
    for (int metric = 0; metric < 8; ++metric) {
      auto other = of_three(spread, 0, static_cast<std::uint64_t>(10 + metric));
      other.name = "copy-" + std::to_string(metric);
      other.add(r);
    }
    EXPECT_EQ(find_kind(judge(r), "slow") != nullptr, spread < 0.01) << all_reasons(judge(r));
  }
  auto together = healthy(1, 3);
  auto& m = first_case(together).metrics[0];
  for (std::size_t s = 0; s < m.values.size() / 3; ++s) m.values[s] *= 0.85;
  EXPECT_EQ(judge(together).state, "PASS");
}

/// What several sizes of few samples agree on was a warning, whatever it lacked and of how many parts.
TEST(VerdictFewSamples, SizesThatAgreeLeaveOpenWhatManySamplesDo) {
  for (const auto& [parts, slow, deficit, state] :
       {std::tuple{3, 1, 0.4, "WARN"}, {3, 1, 0.6, "INCONCLUSIVE"}, {4, 2, 0.4, "INCONCLUSIVE"}}) {
    auto r = cluster(parts);
    const auto devices = rows_of_kind(r, "device");
    std::vector<double> rates(devices.size(), 1e11);
    std::fill_n(rates.begin(), slow, 1e11 * (1 - deficit));
    for (int size = 0; size < 3; ++size)
      add_case(r, "memory", "copy-" + std::to_string(size), "bandwidth", "B/s", results::Better::higher,
               "device", devices, rates, 2)
          .parameters["bytes"] = 1 << (20 + size);
    add_selftest(r, "memory");
    const auto v = judge(r);
    EXPECT_EQ(state_of(r, v, "node0"), state) << parts << " " << deficit << all_reasons(v);
    EXPECT_EQ(state_of(r, v, "node" + std::to_string(parts - 1)), "PASS") << parts << " " << deficit;
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
    for (const double factor : {1.0, 1.25}) {
      const auto fleet = noisy(factor, seed);
      auto r = fleet.run();
      EXPECT_EQ(Fleet::run_retests(r, fleet), 0U) << seed << " " << factor;
      EXPECT_EQ(count_severity(judge(r), "FAIL"), 0U) << seed << " " << factor;
    }
  }
}

TEST(VerdictFewSamples, TheResolutionIsToldWhereNoRetestIsAskedFor) {
  auto fleet = Fleet::of(64, 0.001);
  fleet.rate[17] *= 0.84;
  fleet.noise = 0.03;
  fleet.samples = 4;
  auto r = fleet.run();
  EXPECT_EQ(Fleet::run_retests(r, fleet), 0U);
  const auto v = judge(r);
  EXPECT_EQ(v.state, "WARN");
  ASSERT_FALSE(v.findings.empty());
  EXPECT_THAT(v.findings[0].text, HasSubstr("the resolution is"));
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
