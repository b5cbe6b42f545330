// SPDX-License-Identifier: Apache-2.0
// Entities against their peers: structure, two claims, and the retest stage.
#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "fleet.hpp"
#include "measure/robust.hpp"
#include "verdict/abnormality.hpp"

namespace assay {
namespace {

using namespace fabricate;
using ::testing::HasSubstr;
using ::testing::Not;

std::string device(std::size_t node) { return "node" + std::to_string(node) + "/cores0-1"; }

/// Samples whose median is `rate` and whose halves differ by `half` of it.
void set_samples(results::CaseData& c, std::size_t row, double rate, double half) {
  for (std::size_t s = 0; s < c.samples(); ++s)
    c.metrics[0].values[row * c.samples() + s] = rate * (1 + (s % 2 == 0 ? -half : half) / 2);
}

/// Ranks that train together have one step time, but each its own compute time.
TEST(VerdictPeers, CollectiveComparesOnlyOwnMetric) {
  Fleet fleet = Fleet::of(8, 0.001);
  fleet.suite = "train", fleet.name = "tiny-together", fleet.metric = "compute_throughput",
  fleet.unit = "token/s";
  fleet.rate[3] *= 0.8;
  auto r = fleet.run();
  first_case(r).stage = "train";
  EXPECT_TRUE(verdict::retests(r, verdict::options_from(r)).empty());
  first_case(r).parameters["own"] = "another";
  EXPECT_TRUE(verdict::retests(r, verdict::options_from(r)).empty());
  first_case(r).parameters["own"] = "compute_throughput";
  const auto asked = verdict::retests(r, verdict::options_from(r));
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].candidates, std::vector{row_named(r, device(3))});
  EXPECT_EQ(Fleet::run_retests(r, fleet), 1U);
  const auto v = judge(r);
  ASSERT_EQ(v.findings.size(), 1U);
  EXPECT_EQ(v.findings[0].severity, "FAIL");
  EXPECT_EQ(v.findings[0].name, device(3));
}

// The example of src/verdict/README.md; every number there is one here.
TEST(VerdictPeers, WorkedExample) {
  const std::vector<double> rates = {100.1e9, 99.9e9, 100.2e9, 99.8e9, 100e9, 100.1e9, 99.9e9, 95e9};
  const std::vector<double> halves = {-0.003, -0.002, -0.001, 0, 0.001, 0.002, 0.003, 0.004};
  Fleet fleet;
  fleet.rate = rates;
  fleet.samples = 30;
  auto r = fleet.run();
  for (std::size_t i = 0; i < 8; ++i) set_samples(first_case(r), i, rates[i], halves[i]);
  const auto asked = verdict::retests(r, verdict::options_from(r));
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].candidates, std::vector{row_named(r, device(7))});
  EXPECT_EQ(asked[0].controls.size(), 7U);
  EXPECT_EQ(judge(r).state, "WARN") << "no part fails against peers without a retest";

  auto retest = first_case(r);
  retest.name += ".c1";
  r.cases.push_back(retest);
  EXPECT_TRUE(verdict::retests(r, verdict::options_from(r)).empty());
  const auto v = judge(r);
  ASSERT_EQ(v.findings.size(), 1U);
  const auto& f = v.findings[0];
  EXPECT_EQ(f.severity, "FAIL");
  EXPECT_EQ(f.name, device(7));
  EXPECT_EQ(f.confirmed_by, "retest");
  EXPECT_NEAR(*f.deficit, 0.0495, 1e-4);
  EXPECT_NEAR(*f.ci_low, 0.0446, 1e-4);
  EXPECT_NEAR(*f.ci_high, 0.0544, 1e-4);
  EXPECT_EQ(*f.samples, 30);
  EXPECT_EQ(*f.controls, 7);
  EXPECT_NEAR(*f.p_adjusted, 3.5e-7, 1e-8);
  EXPECT_EQ(v.exit_code, 2);
  EXPECT_NEAR(v.false_alarm_rate, 0.006, 1e-12);
  // The bounds on the way.
  EXPECT_NEAR(verdict::heavy_deletion_p(8, 0.006), 0.000833, 1e-5);
  EXPECT_NEAR(t_quantile(0.99, 6), 3.143, 1e-3);
}

TEST(VerdictPeers, HealthyFleetsAreLeftAlone) {
  for (const std::size_t n : {8U, 64U, 300U}) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      const auto fleet = Fleet::of(n, 0.005, seed);
      auto r = fleet.run();
      EXPECT_EQ(Fleet::run_retests(r, fleet), 0U);
      EXPECT_EQ(judge(r).state, "PASS") << n << " seed " << seed << " " << all_reasons(judge(r));
    }
  }
}

TEST(VerdictPeers, ASlowDeviceIsNamedConfirmedAndNobodyElse) {
  auto fleet = Fleet::of(64, 0.002);
  fleet.rate[17] *= 0.95;
  auto r = fleet.run();
  EXPECT_EQ(Fleet::run_retests(r, fleet), 1U);
  const auto v = judge(r);
  EXPECT_EQ(v.state, "FAIL");
  ASSERT_EQ(v.findings.size(), 1U);
  EXPECT_EQ(v.findings[0].name, device(17));
  EXPECT_EQ(v.findings[0].reference_kind, "peers");
  EXPECT_LT(*v.findings[0].ci_low, 0.05);
  EXPECT_GT(*v.findings[0].ci_low, 0.03);
  EXPECT_EQ(*v.findings[0].controls, 8);
  EXPECT_EQ(state_of(r, v, "node17"), "FAIL");
  EXPECT_EQ(state_of(r, v, "node16"), "PASS");
  EXPECT_THAT(v.findings[0].text, HasSubstr("30 retest samples against 8 controls"));
}

TEST(VerdictPeers, DeficitGoneInRetestIsIntermittent) {
  auto fleet = Fleet::of(64, 0.002);
  const Fleet healthy = fleet;
  fleet.rate[17] *= 0.95;
  auto r = fleet.run();
  Fleet::run_retests(r, healthy);
  auto v = judge(r);
  EXPECT_EQ(v.state, "PASS");
  ASSERT_NE(find_kind(v, "intermittent"), nullptr);
  EXPECT_EQ(find_kind(v, "intermittent")->severity, "INFO");
  EXPECT_FALSE(find_kind(v, "intermittent")->confirmed);
  // Unless it lasted: three blocks over a minute and more.
  fleet.block_s = 35;
  r = fleet.run();
  Fleet::run_retests(r, healthy);
  v = judge(r);
  EXPECT_EQ(v.state, "FAIL");
  EXPECT_EQ(v.findings[0].kind, "intermittent");
  EXPECT_THAT(v.findings[0].text, HasSubstr("in 3 blocks over 70 s"));
}

/// Controls that lose speed between screening and retest acquit nobody, and are told.
TEST(VerdictPeers, SlowControlsAreNoReference) {
  auto fleet = Fleet::of(8, 0.002);
  fleet.rate[3] *= 0.7;
  auto later = fleet;
  for (const std::size_t i : {0U, 1U, 5U, 6U}) later.rate[i] *= 0.5;
  auto r = fleet.run();
  ASSERT_EQ(Fleet::run_retests(r, later), 1U);
  auto v = judge(r);
  EXPECT_EQ(v.state, "WARN") << all_reasons(v);
  ASSERT_NE(find_kind(v, "slow"), nullptr);
  EXPECT_EQ(find_kind(v, "slow")->severity, "WARN");
  EXPECT_EQ(std::count_if(v.findings.begin(), v.findings.end(),
                          [](const auto& f) { return f.kind == "intermittent" && f.severity == "WARN"; }),
            4);

  later = fleet;
  later.rate[3] /= 0.7;
  later.rate[5] *= 0.5;
  r = fleet.run();
  Fleet::run_retests(r, later);
  v = judge(r);
  EXPECT_EQ(v.state, "WARN") << all_reasons(v);
  EXPECT_THAT(all_reasons(v), HasSubstr("retest samples as a control"));
}

TEST(VerdictPeers, ARetestThatConfirmedIsNotForgotten) {
  auto fleet = Fleet::of(8, 0.002);
  const Fleet healthy = fleet;
  fleet.rate[3] *= 0.7;
  auto r = fleet.run();
  Fleet::run_retests(r, fleet);
  ASSERT_EQ(judge(r).state, "FAIL");
  auto other = fleet.run();
  Fleet::run_retests(other, healthy);
  auto again = other.cases.back();
  again.name.back() = '2';
  r.cases.push_back(again);
  const auto v = judge(r);
  EXPECT_EQ(v.state, "WARN") << all_reasons(v);
  EXPECT_THAT(all_reasons(v), HasSubstr("confirmed by a retest and not in the last one"));
}

TEST(VerdictPeers, AmbiguousFindingGivesSamplesNeeded) {
  auto fleet = Fleet::of(64, 0.0005);
  fleet.rate[17] *= 0.967;
  fleet.noise = 0.004;
  auto r = fleet.run();
  Fleet::run_retests(r, fleet);
  const auto v = judge(r);
  EXPECT_EQ(v.state, "WARN");
  EXPECT_THAT(v.findings[0].text, HasSubstr("AMBIGUOUS against 3.0 %"));
  EXPECT_THAT(v.findings[0].text, HasSubstr("samples would decide"));
}

TEST(VerdictPeers, TooNoisyToFailAnybodyBeforeARetest) {
  auto fleet = Fleet::of(64, 0.001);
  fleet.rate[17] *= 0.85;
  fleet.noise = 0.05;
  auto r = fleet.run();
  const auto v = judge(r);
  EXPECT_EQ(v.state, "WARN");
  EXPECT_THAT(v.findings[0].text, HasSubstr("not measured again"));
  EXPECT_EQ(Fleet::run_retests(r, fleet), 1U) << "what warns is measured again";
  EXPECT_EQ(judge(r).state, "FAIL");
}

TEST(VerdictPeers, FourCanFailOneOnlyWhenTheyAgree) {
  auto fleet = Fleet::of(4, 0);
  fleet.rate = {100e9, 100.2e9, 99.9e9, 90e9};
  auto r = fleet.run();
  EXPECT_EQ(judge(r).state, "PASS") << "a note until it was measured again";
  EXPECT_EQ(Fleet::run_retests(r, fleet), 1U);
  EXPECT_EQ(judge(r).state, "FAIL");
  first_case(r).count[3] = 4;  // too few samples to accuse
  EXPECT_NE(judge(r).state, "FAIL");
  fleet.rate = {100e9, 104e9, 97e9, 90e9};
  r = fleet.run();
  EXPECT_EQ(Fleet::run_retests(r, fleet), 0U);
  EXPECT_EQ(count_severity(judge(r), "FAIL"), 0U);
  // Two have nobody to tell which is right.
  fleet.rate = {100e9, 90e9};
  r = fleet.run();
  EXPECT_EQ(Fleet::run_retests(r, fleet), 0U);
}

TEST(VerdictPeers, RanksThatShareCoresFailOnlyWhereTheyTakeTurns) {
  for (const bool alone : {false, true}) {
    Fleet fleet;
    fleet.rate = {100e9, 100.2e9, 99.9e9, 80e9};
    if (alone) fleet.name = "triad-alone";
    auto r = fleet.run();
    for (auto& e : r.entities) {
      if (e.kind == "device") e.name += ".0";
    }
    EXPECT_EQ(Fleet::run_retests(r, fleet), alone ? 1U : 0U);
    EXPECT_EQ(count_severity(judge(r), "FAIL"), alone ? 1U : 0U);
  }
}

TEST(VerdictPeers, RankWithATenthOfWhatSharedCoresGiveIsAWarning) {
  for (const double rate : {30e9, 1e9}) {
    Fleet fleet;
    fleet.rate = {100e9, 100.2e9, 99.9e9, rate};
    auto r = fleet.run();
    for (auto& e : r.entities) {
      if (e.kind == "device") e.name += ".0";
    }
    const auto v = judge(r);
    ASSERT_EQ(v.findings.size(), 1U) << all_reasons(v);
    EXPECT_EQ(v.findings[0].severity, rate < 10e9 ? "WARN" : "INFO");
    first_case(r).count[3] = 2;
    EXPECT_EQ(judge(r).findings[0].severity, "INFO") << "one or two samples may be a pause";
  }
}

TEST(VerdictPeers, AllPartsOfANodeAreTheNode) {
  auto fleet = Fleet::of(64, 0.002);
  for (std::size_t i = 12; i < 16; ++i) fleet.rate[i] *= 0.93;
  auto r = fleet.run(4);
  Fleet::run_retests(r, fleet);
  const auto v = judge(r);
  ASSERT_EQ(v.findings.size(), 1U) << all_reasons(v);
  EXPECT_EQ(v.findings[0].severity, "FAIL");
  EXPECT_EQ(v.findings[0].level, "node");
  EXPECT_EQ(v.findings[0].name, "node3");
  EXPECT_EQ(v.findings[0].members.size(), 4U);
}

TEST(VerdictPeers, SeveralMetricsOfASuiteAreOneFinding) {
  auto triad = Fleet::of(64, 0.002), copy = Fleet::of(64, 0.002, 2);
  copy.name = "copy-together";
  triad.rate[5] *= 0.94;
  copy.rate[5] *= 0.94;
  auto r = triad.run();
  copy.add(r);
  EXPECT_EQ(verdict::retests(r, verdict::options_from(r)).size(), 1U);
  const auto v = judge(r);
  ASSERT_EQ(v.findings.size(), 1U);
  EXPECT_THAT(v.findings[0].text, HasSubstr("and so in 1 other metric of memory"));
}

TEST(VerdictPeers, MetricsTogetherSeeWhatNoneSeesAlone) {
  auto r = cluster(64);
  add_selftest(r, "memory");
  for (int k = 0; k < 8; ++k) {
    auto fleet = Fleet::of(64, 0.008, static_cast<std::uint64_t>(10 + k));
    fleet.name = "pattern" + std::to_string(k) + "-together";
    fleet.rate[5] *= 0.962;
    fleet.add(r);
  }
  const auto asked = verdict::retests(r, verdict::options_from(r));
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].candidates, std::vector{row_named(r, device(5))});
  EXPECT_THAT(judge(r).findings[0].text, HasSubstr("by all metrics of the suite together"));
}

results::Results clocked(double slow_clock, double slow_rate, Fleet& fleet) {
  fleet = Fleet::of(64, 0.002);
  fleet.suite = "gemm";
  fleet.name = "fp32-n2048-together";
  fleet.metric = "throughput";
  fleet.unit = "FLOP/s";
  std::normal_distribution<double> d;
  for (std::size_t i = 0; i < 64; ++i) {
    fleet.clock.push_back(1.5e9 * std::exp(0.015 * d(fleet.random)) * (i == 9 ? slow_clock : 1));
    fleet.rate[i] *= fleet.clock[i] / 1.5e9 * (i == 9 ? slow_rate : 1);
  }
  fleet.rate[9] = 1e11 * fleet.clock[9] / 1.5e9 * slow_rate;
  return fleet.run();
}

TEST(VerdictPeers, SlowAtEqualClockIsAFaultFromThreePercent) {
  Fleet fleet;
  auto r = clocked(1, 0.95, fleet);
  EXPECT_EQ(Fleet::run_retests(r, fleet), 1U);
  const auto v = judge(r);
  ASSERT_FALSE(v.findings.empty());
  EXPECT_EQ(v.findings[0].severity, "FAIL");
  EXPECT_EQ(v.findings[0].kind, "slow_at_clock");
  EXPECT_EQ(v.findings[0].name, device(9));
}

TEST(VerdictPeers, ALowClockThatExplainsTheRateIsThrottling) {
  Fleet fleet;
  auto r = clocked(0.75, 1, fleet);
  Fleet::run_retests(r, fleet);
  const auto v = judge(r);
  ASSERT_FALSE(v.findings.empty());
  EXPECT_EQ(v.findings[0].kind, "throttled");
  EXPECT_EQ(v.findings[0].name, device(9));
  EXPECT_EQ(find_kind(v, "slow_at_clock"), nullptr);
  // The ordinary spread of clocks, 1.5 %, accuses nobody.
  r = clocked(1, 1, fleet);
  EXPECT_EQ(judge(r).state, "PASS");
}

TEST(VerdictPeers, TwoPopulationsAreOneExplainedFinding) {
  auto fleet = Fleet::of(64, 0.003);
  for (std::size_t i = 0; i < 10; ++i) fleet.rate[3 + 6 * i] *= 0.95;
  auto r = fleet.run();
  auto& node = r.inventory["node"];
  node.entity = rows_of_kind(r, "node");
  for (std::size_t i = 0; i < 64; ++i)
    node.text["bios"].push_back(i >= 3 && (i - 3) % 6 == 0 && i < 60 ? "2.1" : "2.4");
  EXPECT_EQ(Fleet::run_retests(r, fleet), 0U);
  auto v = judge(r);
  const auto* f = find_kind(v, "mismatch");
  ASSERT_NE(f, nullptr);
  const auto split =
      std::find_if(v.findings.begin(), v.findings.end(), [](const auto& x) { return x.suite == "memory"; });
  ASSERT_NE(split, v.findings.end());
  EXPECT_EQ(split->severity, "WARN");
  EXPECT_EQ(split->members.size(), 10U);
  EXPECT_THAT(split->text, HasSubstr("explained by node bios = 2.1 (10 of 10 slow, 0 of 54 others"));
  EXPECT_EQ(count_severity(v, "FAIL"), 0U);
  EXPECT_EQ(v.state, "WARN");

  // Nothing recorded tells them apart, and the retest says the same: faulty.
  r.inventory.clear();
  EXPECT_EQ(Fleet::run_retests(r, fleet), 1U);
  v = judge(r);
  ASSERT_EQ(v.findings.size(), 1U);
  EXPECT_EQ(v.findings[0].kind, "split");
  EXPECT_EQ(v.findings[0].severity, "FAIL");
  EXPECT_EQ(v.findings[0].members.size(), 10U);
  EXPECT_EQ(state_of(r, v, "node3"), "FAIL");
  EXPECT_EQ(state_of(r, v, "node4"), "PASS");
}

TEST(VerdictPeers, HalfOfAFleetMayAsWellBeRight) {
  auto fleet = Fleet::of(64, 0.003);
  for (std::size_t i = 0; i < 30; ++i) fleet.rate[i] *= 0.95;
  auto r = fleet.run();
  EXPECT_EQ(Fleet::run_retests(r, fleet), 0U);
  const auto v = judge(r);
  EXPECT_EQ(v.state, "WARN");
  EXPECT_THAT(v.findings[0].text, HasSubstr("30 of 64"));
}

TEST(VerdictPeers, OneDipInTwentySamplesIsSeen) {
  auto fleet = Fleet::of(8, 0.002);
  fleet.samples = 100;
  auto r = fleet.run();
  EXPECT_EQ(find_kind(judge(r), "intermittent"), nullptr);
  for (std::size_t s = 0; s < 100; s += 20) first_case(r).metrics[0].values[2 * 100 + s] *= 0.5;
  const auto v = judge(r);
  ASSERT_NE(find_kind(v, "intermittent"), nullptr);
  EXPECT_EQ(find_kind(v, "intermittent")->name, device(2));
  EXPECT_EQ(v.state, "WARN");
}

TEST(VerdictPeers, RetestsAreNoPopulation) {
  auto fleet = Fleet::of(64, 0.002);
  fleet.rate[17] *= 0.95;
  auto r = fleet.run();
  Fleet::run_retests(r, fleet);
  EXPECT_EQ(r.cases.back().name, "triad-together.c1");
  EXPECT_EQ(judge(r).findings[0].p_adjusted.has_value(), true);
  EXPECT_THAT(judge(r).basis, HasSubstr("peers only 64"));
}

}  // namespace
}  // namespace assay
