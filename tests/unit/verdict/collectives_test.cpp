// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>

#include "base/random.hpp"
#include "simulate/simulate.hpp"
#include "tests/unit/fabricate.hpp"
#include "verdict/collectives.hpp"
#include "verdict/retest/candidates.hpp"

namespace assay {
namespace {

using namespace fabricate;
using ::testing::HasSubstr;

/// All-reduce over random groups of 4 of `nodes` nodes with two devices each; `faults` as for
/// `assay simulate --fault`.
simulate::Spec groups_of(std::int64_t nodes, std::uint64_t seed = 1,
                         const std::vector<std::string>& faults = {}) {
  simulate::Spec spec;
  spec.nodes = nodes;
  spec.devices_per_node = 2;
  spec.samples = 5;
  spec.spike_share = 0;
  spec.seed = seed;
  spec.metrics = simulate::pick_metrics({"allreduce/allreduce-groups-*"});
  for (const std::string& fault : faults) spec.faults.push_back(simulate::parse_fault(fault));
  return spec;
}

const std::string slow_node = "slow:node=17,percent=40,suite=allreduce";

/// Before any retest; faults are not marked as injected, so that states are those of a real run.
results::Results screened_groups(const simulate::Spec& spec) {
  auto r = simulate::screen(spec);
  r.info.injected = false;
  return r;
}

std::vector<std::string> accused_groups(const results::VerdictData& v) {
  std::vector<std::string> names;
  for (const auto& f : v.findings)
    if (f.severity != "INFO") names.push_back(f.level + " " + f.name);
  return names;
}

TEST(VerdictCollectives, NodeThatSlowsAllItsGroupsIsNamed) {
  const auto r = screened_groups(groups_of(32, 1, {slow_node}));
  const auto v = judge(r);
  ASSERT_EQ(accused_groups(v), std::vector<std::string>{"node sim17"});
  EXPECT_EQ(v.findings[0].severity, "WARN");
  EXPECT_NEAR(*v.findings[0].deficit, 0.4, 0.03);
  EXPECT_EQ(state_of(r, v, "sim17"), "WARN");
}

/// Some nodes are left over in a draw. That is no reason to judge none.
TEST(VerdictCollectives, ANodeLeftOverInADrawHidesNoOther) {
  for (const std::int64_t nodes : {11, 13, 26, 27}) {
    auto spec = groups_of(nodes, 1, {"slow:node=5,percent=90,suite=allreduce"});
    spec.devices_per_node = 1;
    EXPECT_EQ(accused_groups(judge(screened_groups(spec))), std::vector<std::string>{"node sim05"}) << nodes;
  }
}

/// Without a gap below the fast groups few nodes need 30 %.
TEST(VerdictCollectives, OfFewNodesOneIsNamedWhereItsGroupsAreApart) {
  int named = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto names_of = [&](const char* percent) {
      const std::string fault = std::string("slow:node=3,suite=allreduce,percent=") + percent;
      return accused_groups(judge(screened_groups(groups_of(12, seed, {fault}))));
    };
    const auto names = names_of("50");
    named += names == std::vector<std::string>{"node sim03"} ? 1 : 0;
    // A node that was with it in all four draws cannot be told from it.
    EXPECT_TRUE(names.empty() || names.size() == 1) << seed;
    for (const auto& name : names_of("20"))
      EXPECT_TRUE(name == "node sim03" || name == "cluster cluster") << name << seed;
    EXPECT_TRUE(names_of("4").empty()) << seed;
  }
  EXPECT_GE(named, 16);
}

TEST(VerdictCollectives, HealthyGroupsAccuseNobody) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed)
    for (const int nodes : {8, 16, 32, 64})
      EXPECT_TRUE(accused_groups(judge(screened_groups(groups_of(nodes, seed)))).empty())
          << nodes << " " << seed;
}

TEST(VerdictCollectives, TooFewDrawsNameNobody) {
  auto spec = groups_of(32, 1, {slow_node});
  spec.group_draws = 2;
  EXPECT_TRUE(accused_groups(judge(screened_groups(spec))).empty());
}

/// All accused of a run with its retest.
std::vector<std::string> accused_after_retest(const simulate::Spec& spec) {
  auto r = simulate::run(spec);
  r.info.injected = false;
  return accused_groups(judge(r));
}

/// More than half of the groups have one of these: their median is no measure of the others.
TEST(VerdictCollectives, ValueAndReferenceBelongToTheDeficit) {
  for (const bool retested : {false, true}) {
    auto spec = groups_of(64, 1, {"slow:node=1-12,percent=90,suite=allreduce"});
    auto r = retested ? simulate::run(spec) : screened_groups(spec);
    const auto v = judge(r);
    ASSERT_GE(v.findings.size(), 12U);
    for (const auto& f : v.findings) {
      if (f.kind != "slow") continue;
      EXPECT_NEAR(*f.reference / 4.4e10, 1, 0.05) << f.text;
      EXPECT_NEAR(*f.value, *f.reference * (1 - *f.deficit), 1e-3 * *f.value) << f.text;
    }
  }
}

TEST(VerdictCollectives, OnlyPairsThatWereMeasuredAreSaidToBeSound) {
  for (const bool pairs : {false, true}) {
    auto spec = groups_of(32, 1, {slow_node});
    if (pairs) spec.metrics.push_back(simulate::pick_metrics({"p2p"}).front());
    const auto v = judge(screened_groups(spec));
    ASSERT_NE(find_kind(v, "slow"), nullptr);
    EXPECT_EQ(find_kind(v, "slow")->text.find("its pairs are not") != std::string::npos, pairs);
  }
}

/// Over a quarter of the nodes slow by less than 30 % were passed over: a gap tells their groups from the
/// others.
TEST(VerdictCollectives, ManyNodesSlowByLittleAreTold) {
  for (const char* percent : {"15", "25"})
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      const std::string fault = std::string("slow:node=0-19,suite=allreduce,percent=") + percent;
      auto r = screened_groups(groups_of(64, seed, {fault}));
      const auto v = judge(r);
      const auto* split = find_kind(v, "split");
      ASSERT_NE(split, nullptr) << percent << " " << seed;
      EXPECT_EQ(split->severity, "WARN");
      EXPECT_GE(split->members.size(), 15U) << split->text;
    }
}

/// With traffic of others, which leaves single groups between the fast and the slow ones; after the retest.
std::vector<std::string> accused_in_traffic(std::int64_t nodes, std::uint64_t seed,
                                            const std::vector<std::string>& faults) {
  auto spec = groups_of(nodes, seed, faults);
  spec.devices_per_node = 1;
  spec.samples = 10;
  spec.spike_share = simulate::Spec{}.spike_share;
  return accused_after_retest(spec);
}

TEST(VerdictCollectives, ManyNodesSlowByLittleAreToldInTraffic) {
  const std::vector<std::pair<int, const char*>> slow{{32, "slow:node=0-5,suite=allreduce,percent=15"},
                                                      {32, "slow:node=0-7,suite=allreduce,percent=15"},
                                                      {64, "slow:node=0-15,suite=allreduce,percent=15"},
                                                      {16, "slow:node=0-3,suite=allreduce,percent=20"}};
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    EXPECT_TRUE(accused_in_traffic(32, seed, {}).empty()) << seed;
    for (const auto& [nodes, fault] : slow)
      EXPECT_FALSE(accused_in_traffic(nodes, seed, {fault}).empty()) << nodes << fault << seed;
  }
}

/// One that was in slow groups by chance, and hardly is in new ones.
TEST(VerdictCollectives, WhoIsHardlySlowInNewGroupsIsNotNamed) {
  for (std::uint64_t seed = 1; seed <= 32; ++seed)
    for (const auto& name : accused_in_traffic(32, seed, {"slow:node=0-3,suite=allreduce,percent=15"}))
      EXPECT_LE(name, "node sim03") << seed;
}

/// More than a quarter of the nodes: those that groups without any other suspect accuse are named, and what
/// is slow besides is told.
TEST(VerdictCollectives, ManySlowNodesAreNamedOrTold) {
  std::size_t named = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    auto names = accused_after_retest(groups_of(64, seed, {"slow:node=1-19,percent=99.9,suite=allreduce"}));
    std::erase(names, "cluster cluster");
    for (const auto& name : names) {
      EXPECT_GE(name, "node sim01");
      EXPECT_LE(name, "node sim19");
    }
    named += names.size();
  }
  EXPECT_GE(named, 80U);
  EXPECT_EQ(accused_after_retest(groups_of(16, 1, {"slow:node=1+5+9+12,percent=90,suite=allreduce"})).size(),
            4U);
  EXPECT_EQ(accused_after_retest(groups_of(8, 1, {"slow:node=1+2,percent=60,suite=allreduce"})).size(), 2U);
}

TEST(VerdictCollectives, WhoseGroupsAreSlowMayBeOpen) {
  const auto spec = groups_of(16, 2, {"slow:node=1+5+9+12+13+14,percent=90,suite=allreduce"});
  const auto v = judge(screened_groups(spec));
  ASSERT_EQ(accused_groups(v), std::vector<std::string>{"cluster cluster"});
  EXPECT_EQ(v.findings[0].kind, "split");
  EXPECT_GE(v.findings[0].members.size(), 6U);
  EXPECT_THAT(v.findings[0].text, HasSubstr("random groups differ by a factor of "));
  EXPECT_THAT(v.findings[0].text, HasSubstr("which of them are slow is not known"));
}

TEST(VerdictCollectives, ASwitchThatSlowsAllGroupsAcrossItIsNamed) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed)
    for (const auto& [nodes, leaves] : {std::pair(32, 4), std::pair(64, 8)}) {
      auto spec = groups_of(nodes, seed, {"slow:leaf=1,percent=90"});
      spec.devices_per_node = 1;
      spec.leaves = leaves;
      EXPECT_EQ(accused_after_retest(spec), std::vector<std::string>{"switch switch:L1"})
          << nodes << " " << seed;
      spec.faults.clear();
      EXPECT_TRUE(accused_after_retest(spec).empty()) << nodes << " " << seed;
    }
}

std::vector<verdict::Retest> wanted_groups(const results::Results& r) {
  const auto options = verdict::options_from(r);
  verdict::Judgement j(r, options);
  verdict::collect_series(j);
  return verdict::collective_retests(j);
}

TEST(VerdictCollectives, NewGroupsConfirmOrClear) {
  const auto slow = groups_of(32, 1, {slow_node}), healthy = groups_of(32);
  for (const bool still : {true, false}) {
    auto r = screened_groups(slow);
    const auto asked = wanted_groups(r);
    ASSERT_EQ(asked.size(), 1U);
    EXPECT_EQ(asked[0].name, slow.metrics[0].name);
    EXPECT_THAT(asked[0].candidates,
                testing::ElementsAre(row_named(r, "sim17/gpu0"), row_named(r, "sim17/gpu1")));
    EXPECT_EQ(asked[0].controls.size(), 62U);
    simulate::run_retests(r, still ? slow : healthy, verdict::options_from(r));
    EXPECT_TRUE(wanted_groups(r).empty());
    const auto v = judge(r);
    EXPECT_EQ(accused_groups(v).size(), still ? 1U : 0U);
    ASSERT_NE(find_kind(v, "slow"), nullptr);
    EXPECT_EQ(find_kind(v, "slow")->confirmed_by, still ? "retest" : "");
    EXPECT_THAT(find_kind(v, "slow")->text,
                HasSubstr(still ? "confirmed by new groups" : "not slow in new groups"));
  }
}

/// What new groups of one size clear was passed over in all others, and not measured again there.
TEST(VerdictCollectives, ASizeThatIsClearedHidesNoOther) {
  auto slow = groups_of(32, 1, {slow_node});
  slow.metrics.push_back(slow.metrics.front());
  slow.metrics.back().name = "allreduce-groups-67108864-mpi";
  slow.metrics.back().parameters["bytes"] = 67108864;
  auto later = slow;
  later.faults = {simulate::parse_fault(slow_node + ",case=" + slow.metrics.back().name)};
  auto r = screened_groups(slow);
  ASSERT_EQ(wanted_groups(r).size(), 1U);
  EXPECT_EQ(simulate::run_retests(r, later, verdict::options_from(r)), 2U);
  auto v = judge(r);
  EXPECT_EQ(accused_groups(v), std::vector<std::string>{"node sim17"});
  EXPECT_EQ(v.findings[0].confirmed_by, "retest");
  EXPECT_THAT(v.findings[0].metric, HasSubstr("67108864"));
  r = screened_groups(slow);
  later.faults.clear();
  simulate::run_retests(r, later, verdict::options_from(r));
  v = judge(r);
  EXPECT_TRUE(accused_groups(v).empty());
  EXPECT_EQ(std::ranges::count(v.findings, "sim17", &results::Finding::name), 1) << "one note for all sizes";
}

/// It was told again for each size.
TEST(VerdictCollectives, ThatGroupsDifferedForAWhileIsOneNote) {
  auto slow = groups_of(16, 2, {"slow:node=1+5+9+12+13+14,percent=90,suite=allreduce"});
  for (int size = 1; size < 3; ++size) {
    slow.metrics.push_back(slow.metrics.front());
    slow.metrics.back().name = "allreduce-groups-" + std::to_string(16777216 << size) + "-mpi";
    slow.metrics.back().parameters["bytes"] = 16777216 << size;
  }
  auto r = screened_groups(slow);
  auto later = slow;
  later.faults.clear();
  simulate::run_retests(r, later, verdict::options_from(r));
  const auto v = judge(r);
  EXPECT_TRUE(accused_groups(v).empty());
  EXPECT_EQ(std::ranges::count(v.findings, "split", &results::Finding::kind), 1) << all_reasons(v);
}

/// Operations of all ranks of one node at once: sample s of one beside sample s of the others. What disturbs
/// the machine makes all take up to ten times longer, and each by 30 % besides. `slow`: a rank that takes
/// four times longer, as a device index of `assay simulate --fault`.
simulate::Spec in_step(const std::string& suite, const std::string& name, const std::string& metric,
                       const std::string& slow = {}, std::int64_t ranks = 4, std::int64_t samples = 9) {
  simulate::Spec spec;
  spec.nodes = 1;
  spec.devices_per_node = ranks;
  spec.samples = samples;
  spec.blocks = 1;
  spec.level = "quick";
  spec.between_cv = 0;
  spec.within_cv = 0.08;
  spec.common = 2.3;
  spec.metrics = {{suite, name, metric, "s", results::Better::lower, simulate::Subject::device,
                   suite == "train" ? "train" : "world", 1e-3}};
  if (!slow.empty()) spec.faults = {simulate::parse_fault("slow:percent=75,device=" + slow)};
  return spec;
}

simulate::Spec allreduce_in_step(const std::string& slow, std::int64_t ranks = 4) {
  return in_step("allreduce", "allreduce-world-8-mpi", "duration", slow, ranks);
}

results::VerdictData judge_screened(const simulate::Spec& spec) { return judge(screened_groups(spec)); }

TEST(VerdictInStep, SlowRankIsNamedAndConfirmed) {
  for (const auto& [suite, name, metric] : {std::tuple("allreduce", "allreduce-world-8-mpi", "duration"),
                                            std::tuple("train", "tiny-together", "compute")}) {
    const auto slow = in_step(suite, name, metric, "1"), healthy = in_step(suite, name, metric);
    const auto r = screened_groups(slow);
    const auto warned = judge(r);
    ASSERT_EQ(accused_groups(warned), std::vector<std::string>{"device sim00/gpu1"}) << suite;
    EXPECT_EQ(warned.findings[0].severity, "WARN");
    const auto asked = verdict::retests(r, verdict::options_from(r));
    ASSERT_EQ(asked.size(), 1U) << suite;
    EXPECT_EQ(asked[0].name, name);
    EXPECT_EQ(asked[0].candidates, std::vector{row_named(r, "sim00/gpu1")});
    for (const bool still : {true, false}) {
      auto again = r;
      EXPECT_EQ(simulate::run_retests(again, still ? slow : healthy, verdict::options_from(again)), 1U);
      const auto v = judge(again);
      ASSERT_EQ(count_severity(v, "FAIL"), still ? 1U : 0U) << suite;
      if (!still) continue;
      EXPECT_EQ(v.findings[0].name, "sim00/gpu1");
      EXPECT_NEAR(*v.findings[0].deficit, 0.75, 0.06);
      EXPECT_THAT(v.findings[0].text, HasSubstr("9 of 9"));
    }
  }
}

/// Few ranks are never FAIL against peers, and their warning kept the confirmed fault from being told.
TEST(VerdictInStep, AWarningOfFewPeersHidesNoConfirmedFault) {
  const auto slow = allreduce_in_step("1");
  auto r = screened_groups(slow);
  simulate::run_retests(r, slow, verdict::options_from(r));
  auto& rate = add_case(r, "allreduce", "rate-alone", "bandwidth", "B/s", results::Better::higher, "device",
                        first_case(r).entity, {1e11, 6e10, 1e11, 1e11});
  rate.stage = "node-local";
  rate.metrics[0].judging = results::Judging{};
  const auto v = judge(r);
  EXPECT_EQ(count_severity(v, "WARN"), 1U) << all_reasons(v);
  ASSERT_EQ(count_severity(v, "FAIL"), 1U);
  EXPECT_EQ(v.findings[0].name, "sim00/gpu1");
  EXPECT_EQ(v.findings[0].confirmed_by, "retest");
}

TEST(VerdictInStep, CommonOrRandomSlownessNamesNoRank) {
  EXPECT_TRUE(accused_groups(judge_screened(allreduce_in_step(""))).empty());
  EXPECT_TRUE(accused_groups(judge_screened(allreduce_in_step("1+2"))).empty());
  // Who comes late makes the others wait: their times are long, its own is short.
  EXPECT_TRUE(accused_groups(judge_screened(allreduce_in_step("0+2+3"))).empty());
  EXPECT_TRUE(accused_groups(judge_screened(allreduce_in_step("1", 3))).empty());  // too few
}

TEST(VerdictInStep, RepeatedLateArrivalsAreIntermittent) {
  for (const int stalls : {0, 3, 12}) {
    auto r = screened_groups(in_step("allreduce", "allreduce-world-8-mpi-isolated", "duration", {}, 4, 100));
    auto& c = first_case(r);
    results::Metric skew{"arrival_skew", "s", results::Better::lower, true, results::Role::covariate,
                         true,           {}};
    const RandomStream random(3, "skew");
    for (std::size_t e = 0; e < 4; ++e)
      for (std::size_t s = 0; s < 100; ++s) {
        const bool stalled = e == 2 && s % 8 == 0 && s / 8 < static_cast<std::size_t>(stalls);
        skew.values.push_back(stalled ? 0.5 : 1e-6 * random.uniform(100 * e + s));
      }
    c.metrics.push_back(skew);
    const auto v = judge(r);
    if (stalls < 5) {
      EXPECT_TRUE(accused_groups(v).empty()) << stalls;
      continue;
    }
    ASSERT_EQ(accused_groups(v), std::vector<std::string>{"device sim00/gpu2"});
    EXPECT_EQ(v.findings[0].kind, "intermittent");
    EXPECT_THAT(v.findings[0].text, HasSubstr("came late 12 times in 100 operations"));
  }
}

}  // namespace
}  // namespace assay
