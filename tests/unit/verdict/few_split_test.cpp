// SPDX-License-Identifier: Apache-2.0
// Groups of slow parts: half of fewer than 24, in which none stands out, and the states of equal parts.
#include <gmock/gmock.h>

#include <cmath>
#include <map>

#include "fleet.hpp"
#include "simulate/simulate.hpp"

namespace assay {
namespace {

using namespace fabricate;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

Fleet with_slow(std::size_t parts, std::size_t slow, double deficit, std::uint64_t seed = 1) {
  auto fleet = Fleet::of(parts, 0.003, seed);
  for (std::size_t i = 0; i < slow; ++i) fleet.rate[i] *= 1 - deficit;
  return fleet;
}

const results::Finding* split_of(const results::VerdictData& v) {
  for (const auto& f : v.findings)
    if (f.kind == "split" && f.level == "cluster") return &f;
  return nullptr;
}

TEST(VerdictFewSplit, HalfOfTheFleetSlowFailsNobodyAndIsOpenWhereKindsCannotDifferSoMuch) {
  for (const std::size_t parts : {6, 8, 16, 22})
    for (const double deficit : {0.12, 0.5, 0.999}) {
      const auto v = judge(with_slow(parts, parts / 2, deficit).run());
      EXPECT_EQ(v.state, deficit > 0.2 ? "INCONCLUSIVE" : "WARN")
          << parts << " " << deficit << all_reasons(v);
      const auto* f = split_of(v);
      ASSERT_NE(f, nullptr) << parts << " " << deficit << all_reasons(v);
      EXPECT_EQ(f->members.size(), parts / 2);
      EXPECT_NEAR(*f->deficit, deficit, 0.02);
    }
}

/// A third level below hid that most parts are at half the rate.
TEST(VerdictFewSplit, APartThatIsSlowerStillDoesNotHideThatMostAreSlow) {
  auto fleet = with_slow(12, 8, 0.5);
  fleet.rate[3] *= 0.8;
  const auto r = fleet.run();
  const auto v = judge(r);
  ASSERT_NE(split_of(v), nullptr) << all_reasons(v);
  EXPECT_EQ(split_of(v)->members.size(), 4U);
  EXPECT_EQ(state_of(r, v, "node0"), "INCONCLUSIVE");
}

/// Five slow by 10 % beside five by 5 % of 16 were PASS, though either five alone is not.
TEST(VerdictFewSplit, ThreeLevelsOfAFewAreAWarning) {
  for (const auto& [parts, each] : {std::pair{16, 5}, {8, 2}, {24, 8}, {40, 13}})
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      auto fleet = Fleet::of(static_cast<std::size_t>(parts), 0.001, seed);
      for (int i = 0; i < 2 * each; ++i) fleet.rate[static_cast<std::size_t>(i)] *= i < each ? 0.9 : 0.95;
      const auto v = judge(fleet.run());
      EXPECT_EQ(v.state, "WARN") << parts << all_reasons(v);
      ASSERT_NE(split_of(v), nullptr) << parts;
      if (parts < 24) {
        EXPECT_THAT(split_of(v)->text, HasSubstr("3 different rates"));
      }
    }
}

/// Either alone fails.
TEST(VerdictFewSplit, OfSixTwoThatAreSlowByUnlikeAmountsAreNamed) {
  for (const auto& [more, less] : {std::pair{0.4, 0.28}, {0.6, 0.5}, {0.9, 0.3}}) {
    auto fleet = Fleet::of(6, 0.003, 1);
    fleet.rate[0] *= 1 - more;
    fleet.rate[3] *= 1 - less;
    const auto v = judge(fleet.run());
    ASSERT_NE(split_of(v), nullptr) << more << all_reasons(v);
    EXPECT_EQ(split_of(v)->severity, "WARN");
    EXPECT_THAT(split_of(v)->members, ::testing::Contains("node3/cores0-1")) << split_of(v)->text;
    const bool first = std::ranges::any_of(v.findings, [](const auto& f) {
      return f.severity == "WARN" &&
             (f.name == "node0/cores0-1" || std::ranges::count(f.members, "node0/cores0-1") > 0);
    });
    EXPECT_TRUE(first) << more;
  }
}

/// Two of twelve in one metric and two others in another were "4 of 12" in one of them.
TEST(VerdictFewSplit, GroupsThatAreSlowInDifferentMetricsAreToldApart) {
  simulate::Spec spec;
  spec.nodes = 12;
  spec.between_cv = 0.002;
  spec.metrics = simulate::pick_metrics({"memory/triad-together", "memory/latency-alone"});
  for (const auto* fault :
       {"slow:node=0-1,percent=5,case=triad-together", "slow:node=5-6,percent=6,case=latency-alone"})
    spec.faults.push_back(simulate::parse_fault(fault));
  std::map<std::string, std::vector<std::string>> groups;
  const auto run = simulate::run(spec);
  for (const auto& f : run.verdict->findings)
    if (f.severity == "WARN" && f.kind == "split") groups[f.metric] = f.members;
  EXPECT_THAT(groups,
              UnorderedElementsAre(
                  Pair("memory/triad-together:bandwidth", UnorderedElementsAre("sim00/gpu0", "sim01/gpu0")),
                  Pair("memory/latency-alone:latency", UnorderedElementsAre("sim05/gpu0", "sim06/gpu0"))));
}

/// Those that are slow by far were told, and a third of the fleet beside them was PASS.
TEST(VerdictFewSplit, AGroupBesideASlowerOneIsNamed) {
  for (const std::size_t parts : {16, 24, 40}) {
    auto fleet = with_slow(parts, parts / 3, 0.18);
    for (std::size_t i = 0; i < parts / 6; ++i) fleet.rate[parts - 1 - i] *= 0.4;
    const auto v = judge(fleet.run());
    const auto* f = split_of(v);
    ASSERT_NE(f, nullptr) << parts << all_reasons(v);
    bool told = false;
    for (const auto& split : v.findings)
      told = told || (split.kind == "split" && std::ranges::count(split.members, "node0/cores0-1") > 0);
    EXPECT_TRUE(told) << parts << all_reasons(v);
  }
}

/// Two kinds widen the spread: a part that is slower than both by 12 % was PASS.
TEST(VerdictFewSplit, APartBelowTwoKindsIsAWarning) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    auto fleet = Fleet::of(16, 0.003, seed);
    for (std::size_t i = 0; i < 6; ++i) fleet.rate[i] *= 1.06;
    fleet.rate[9] *= 0.88;
    const auto r = fleet.run();
    const auto v = judge(r);
    EXPECT_EQ(state_of(r, v, "node9"), "WARN") << seed << all_reasons(v);
    EXPECT_EQ(state_of(r, v, "node2"), "PASS") << seed << all_reasons(v);
  }
}

/// Kinds of one model differ by as much, so that it is a note; it was nothing.
TEST(VerdictFewSplit, TwoSidesThatDifferAsKindsDoAreANote) {
  for (const std::size_t slow : {8U, 12U}) {
    const auto v = judge(with_slow(16, slow, 0.07).run());
    EXPECT_EQ(v.state, "PASS") << all_reasons(v);
    ASSERT_NE(split_of(v), nullptr) << slow;
    EXPECT_EQ(split_of(v)->severity, "INFO");
    EXPECT_THAT(split_of(v)->text, HasSubstr("peers do not show which side is right"));
  }
  EXPECT_EQ(split_of(judge(with_slow(16, 0, 0).run())), nullptr);
}

TEST(VerdictFewSplit, AFewOfManyThatAreTwiceAsFastAreTold) {
  for (const std::size_t parts : {64U, 300U})
    for (const std::size_t fast : {1U, 3U}) {
      const auto v = judge(with_slow(parts, parts - fast, 0.6).run());
      ASSERT_NE(split_of(v), nullptr) << parts << " " << fast;
      EXPECT_EQ(split_of(v)->members.size(), fast);
      EXPECT_EQ(v.state, "WARN");
    }
}

TEST(VerdictFewSplit, PartsThatAllDifferAreAWarning) {
  for (const std::size_t parts : {8U, 64U})
    for (const double cv : {0.05, 0.5}) {
      auto fleet = Fleet::of(parts, 0.003, 1);
      for (std::size_t i = 0; i < parts; ++i)
        fleet.rate[i] *= std::exp(cv * (static_cast<double>(i) / static_cast<double>(parts) - 0.5));
      const auto v = judge(fleet.run());
      EXPECT_EQ(v.state, cv > 0.1 ? "WARN" : "PASS") << parts << " " << cv << all_reasons(v);
    }
}

TEST(VerdictFewSplit, MoreThanHalfSlowIsAWarningAndOpenWhereKindsCannotDifferSoMuch) {
  for (const auto& [parts, slow] : {std::pair(7, 5), std::pair(8, 5), std::pair(16, 10), std::pair(64, 40)})
    for (const double deficit : {0.12, 0.4, 0.9999}) {
      if (parts == 7 && deficit < 0.2) continue;  // two are no group
      const auto r =
          with_slow(static_cast<std::size_t>(parts), static_cast<std::size_t>(slow), deficit).run();
      const auto v = judge(r);
      const std::string state = deficit > 0.2 ? "INCONCLUSIVE" : "WARN";
      EXPECT_EQ(v.state, state) << parts << " " << deficit << all_reasons(v);
      ASSERT_NE(split_of(v), nullptr) << parts << " " << deficit << all_reasons(v);
      EXPECT_EQ(split_of(v)->members.size(), static_cast<std::size_t>(parts - slow));
      EXPECT_EQ(state_of(r, v, "node0"), deficit > 0.2 ? state : "PASS") << parts << " " << deficit;
      EXPECT_EQ(state_of(r, v, "node" + std::to_string(parts - 1)), "PASS") << parts << " " << deficit;
    }
}

TEST(VerdictFewSplit, WhatIsOpenIsNoMilderWhereMoreIsMissing) {
  for (const auto& [parts, slow] : {std::pair(6, 2), std::pair(7, 3)})
    for (const double deficit : {0.35, 0.45, 0.6, 0.9, 0.9999}) {
      const auto r =
          with_slow(static_cast<std::size_t>(parts), static_cast<std::size_t>(slow), deficit).run();
      const auto v = judge(r);
      EXPECT_EQ(v.state, "INCONCLUSIVE") << parts << " " << deficit << all_reasons(v);
      EXPECT_EQ(state_of(r, v, "node0"), "INCONCLUSIVE") << parts << " " << deficit;
      for (const auto& f : v.findings) EXPECT_EQ(f.text.find("heavy-tailed"), std::string::npos) << f.text;
    }
}

TEST(VerdictFewSplit, PartsThatAreSlowBesideSlowerOnesAreOpenToo) {
  auto fleet = with_slow(8, 4, 0.5);
  fleet.rate[0] *= 0.2, fleet.rate[1] *= 0.2;
  const auto r = fleet.run();
  const auto v = judge(r);
  EXPECT_EQ(v.state, "INCONCLUSIVE") << all_reasons(v);
  for (const char* node : {"node0", "node1", "node2", "node3"})
    EXPECT_EQ(state_of(r, v, node), "INCONCLUSIVE");
}

TEST(VerdictFewSplit, FivePercentBetweenHalvesIsNoFinding) {
  EXPECT_EQ(judge(with_slow(16, 8, 0.05).run()).state, "PASS");
}

TEST(VerdictFewSplit, EquallySlowPartsHaveEqualStates) {
  for (const double deficit : {0.09, 0.10, 0.11, 0.13})
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      const auto fleet = with_slow(30, 6, deficit, seed);
      auto r = fleet.run();
      Fleet::run_retests(r, fleet);
      const auto v = judge(r);
      std::set<std::string> states;
      for (std::size_t i = 0; i < 6; ++i) states.insert(state_of(r, v, "node" + std::to_string(i)));
      EXPECT_EQ(states.size(), 1U) << deficit << " " << seed << all_reasons(v);
    }
}

TEST(VerdictFewSplit, HealthyFleetsHaveNoSplit) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const auto v = judge(Fleet::of(6 + seed % 18, 0.05, seed).run());
    EXPECT_EQ(split_of(v), nullptr) << seed << all_reasons(v);
  }
}

TEST(VerdictFewSplit, ASlowPartHidesNoThrottledOne) {
  for (const double slow : {0.0, 0.1, 0.5}) {
    auto fleet = Fleet::of(32, 0.002);
    fleet.suite = "gemm", fleet.name = "fp32-n4096-together", fleet.metric = "throughput",
    fleet.unit = "FLOP/s";
    std::normal_distribution<double> spread;
    for (double& rate : fleet.rate) {
      const double clock = std::exp(0.01 * spread(fleet.random));
      fleet.clock.push_back(1.5e9 * clock);
      rate *= clock;
    }
    fleet.clock[2] *= 0.75, fleet.rate[2] *= 0.75;
    fleet.rate[4] *= 1 - slow;
    auto r = fleet.run();
    Fleet::run_retests(r, fleet);
    const auto v = judge(r);
    EXPECT_EQ(state_of(r, v, "node2"), "FAIL") << slow << all_reasons(v);
    EXPECT_EQ(state_of(r, v, "node4"), slow > 0 ? "FAIL" : "PASS") << slow << all_reasons(v);
  }
}

/// Rates of the parts, as shares of that of a healthy one.
Fleet of_levels(const std::vector<std::pair<std::size_t, double>>& levels) {
  std::size_t parts = 0;
  for (const auto& [count, share] : levels) parts += count;
  auto fleet = Fleet::of(parts, 0.003);
  std::size_t next = 0;
  for (const auto& [count, share] : levels)
    for (std::size_t i = 0; i < count; ++i) fleet.rate[next++] *= share;
  return fleet;
}

TEST(VerdictLevels, ThreeRatesOfWhichNoneIsThatOfMostAreOpen) {
  using Levels = std::vector<std::pair<std::size_t, double>>;
  for (const Levels& levels : {Levels{{24, 1.0}, {12, 0.7}, {12, 0.5}}, Levels{{6, 1.0}, {3, 0.7}, {3, 0.5}},
                               Levels{{7, 1.0}, {7, 0.7}, {6, 0.5}}, Levels{{4, 1.0}, {4, 0.7}, {4, 0.5}},
                               Levels{{24, 1.0}, {8, 0.85}, {8, 0.7}, {8, 0.5}}}) {
    const auto v = judge(of_levels(levels).run());
    EXPECT_EQ(v.state, "INCONCLUSIVE") << all_reasons(v);
    ASSERT_NE(split_of(v), nullptr) << levels.size() << " " << levels[0].first << all_reasons(v);
    EXPECT_NEAR(*split_of(v)->deficit, 0.5, 0.02);
  }
}

TEST(VerdictLevels, AFewPartsThatAreMuchFasterThanAllOthersAreAWarning) {
  for (const std::size_t parts : {6, 8, 12, 40}) {
    const auto v = judge(of_levels({{1, 1.0}, {parts - 1, 0.5}}).run());
    EXPECT_EQ(v.state, "WARN") << parts << all_reasons(v);
    EXPECT_EQ(judge(of_levels({{1, 1.0}, {parts - 1, 0.9}}).run()).state, "PASS") << parts;
  }
}

TEST(VerdictLevels, APartByItselfHidesNoLevels) {
  using Levels = std::vector<std::pair<std::size_t, double>>;
  for (const Levels& levels :
       {Levels{{1, 1.0}, {4, 0.7}, {4, 0.3}, {3, 0.1}}, Levels{{1, 1.0}, {8, 0.5}, {7, 0.4}},
        Levels{{1, 1.0}, {9, 0.6}, {10, 0.3}}, Levels{{3, 1.0}, {4, 0.1}, {1, 0.05}}}) {
    const auto v = judge(of_levels(levels).run());
    EXPECT_EQ(v.state, "INCONCLUSIVE") << levels.size() << " " << levels[1].first << all_reasons(v);
    EXPECT_NE(split_of(v), nullptr);
  }
}

TEST(VerdictLevels, HealthyPartsHaveNone) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed)
    for (const std::size_t parts : {6, 12, 30})
      for (const double spread : {0.003, 0.05})
        EXPECT_EQ(split_of(judge(Fleet::of(parts, spread, seed).run())), nullptr) << parts << " " << seed;
}

/// Two of six were no group: PASS up to 20 %, whichever side was slow. A faster minority is a note up to 10
/// %.
TEST(VerdictFewSplit, TwoOfSixAreToldAsHalfOfThemAre) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    for (const std::size_t slow : {2U, 4U})
      for (const double deficit : {0.05, 0.12, 0.18, 0.23, 0.27, 0.35}) {
        auto fleet = Fleet::of(6, 0.001, seed);
        for (std::size_t i = 0; i < slow; ++i) fleet.rate[i] *= 1 - deficit;
        const auto v = judge(fleet.run());
        EXPECT_EQ(v.state, deficit > 0.2   ? "INCONCLUSIVE"
                           : deficit > 0.1 ? "WARN"
                                           : "PASS")
            << seed << " " << slow << " " << deficit << all_reasons(v);
        ASSERT_NE(split_of(v), nullptr) << seed << " " << slow << " " << deficit;
        EXPECT_EQ(split_of(v)->members.size(), 2U);
        EXPECT_THAT(split_of(v)->text, HasSubstr("do not show which"));
      }
}

TEST(VerdictFewSplit, OneOfTwoToFiveAtATenthIsOpenInAnImportWithOneToFourSamples) {
  for (const std::size_t parts : {2U, 3U, 4U, 5U})
    for (const int samples : {1, 2, 4}) {
      auto fleet = with_slow(parts, 1, 0.9);
      fleet.samples = samples;
      fleet.blocks = 1;
      const auto imported = [&] {
        auto r = fleet.run();
        for (auto& c : r.cases) c.parameters["imported"] = true;
        return r;
      };
      const auto r = imported();
      const auto v = judge(r);
      EXPECT_EQ(v.state, "INCONCLUSIVE") << parts << " " << samples << all_reasons(v);
      EXPECT_EQ(state_of(r, v, "node0"), "INCONCLUSIVE");
      fleet.rate[0] = fleet.rate[1];
      EXPECT_EQ(judge(imported()).state, "PASS") << parts << " " << samples;
    }
}

TEST(VerdictFewSplit, SomeOfTwoToFiveAtHalfRateAreOpen) {
  for (const std::size_t parts : {2U, 3U, 4U, 5U})
    for (std::size_t slow = 0; slow < parts; ++slow)
      for (const double deficit : {0.08, 0.5, 0.999}) {
        const auto r = with_slow(parts, slow, deficit).run();
        const auto v = judge(r);
        if (slow == 0 || deficit < 0.2) {
          EXPECT_EQ(v.state, "PASS") << parts << " " << slow << " " << deficit << all_reasons(v);
          continue;
        }
        if (parts >= 4 && slow + 1 == parts) continue;  // one that is faster
        EXPECT_EQ(v.state, "INCONCLUSIVE") << parts << " " << slow << " " << deficit << all_reasons(v);
        EXPECT_EQ(state_of(r, v, "node0"), "INCONCLUSIVE");
        EXPECT_EQ(state_of(r, v, "node" + std::to_string(parts - 1)), "PASS");
      }
}

}  // namespace
}  // namespace assay
