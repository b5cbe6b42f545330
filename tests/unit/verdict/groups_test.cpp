// SPDX-License-Identifier: Apache-2.0
// Several slow parts at once: only those that are slow are accused, and more of them never make a verdict
// milder.
#include <gmock/gmock.h>

#include <functional>
#include <set>

#include "fleet.hpp"

namespace assay {
namespace {

using namespace fabricate;
using ::testing::HasSubstr;
using ::testing::Not;

std::string part_of(std::size_t node) { return "node" + std::to_string(node) + "/cores0-1"; }

/// Everybody whom a FAIL accuses.
std::set<std::string> accused_in(const results::VerdictData& v) {
  std::set<std::string> names;
  for (const auto& f : v.findings) {
    if (f.severity != "FAIL") continue;
    if (f.members.empty()) names.insert(f.name);
    names.insert(f.members.begin(), f.members.end());
  }
  return names;
}

std::set<std::string> parts_of(const std::vector<std::size_t>& nodes) {
  std::set<std::string> names;
  for (const auto n : nodes) names.insert(part_of(n));
  return names;
}

std::size_t failed_nodes(const results::Results& r, const results::VerdictData& v) {
  return static_cast<std::size_t>(std::count_if(v.entities.begin(), v.entities.end(), [&](const auto& s) {
    return s.state == "FAIL" && r.entities[static_cast<std::size_t>(s.entity)].kind == "node";
  }));
}

/// A fleet in which `slow` are slower by `percent`, measured, confirmed and judged.
results::VerdictData verdict_of(std::size_t n, double spread, std::uint64_t seed,
                                const std::vector<std::pair<std::size_t, double>>& slow) {
  auto fleet = Fleet::of(n, spread, seed);
  for (const auto& [node, percent] : slow) fleet.rate[node] *= 1 - percent / 100;
  auto r = fleet.run();
  Fleet::run_retests(r, fleet);
  return judge(r);
}

TEST(VerdictGroups, TwoSlowOfSixtyFourFailAlone) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto v = verdict_of(64, 0.001, seed, {{17, 10}, {18, 10}});
    EXPECT_EQ(accused_in(v), parts_of({17, 18})) << seed << " " << all_reasons(v);
  }
  for (const std::size_t n : {100U, 200U, 300U}) {
    std::vector<std::pair<std::size_t, double>> slow;
    std::vector<std::size_t> nodes;
    for (std::size_t i = 0; i < n / 40 + 1; ++i) {
      nodes.push_back(3 + 7 * i);
      slow.emplace_back(nodes.back(), 10);
    }
    const auto v = verdict_of(n, 0.001, n, slow);
    EXPECT_EQ(accused_in(v), parts_of(nodes)) << n << " " << all_reasons(v);
  }
}

TEST(VerdictGroups, SlowPartsOfUnequalStrengthAreEachNamed) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const auto v = verdict_of(64, 0.002, seed, {{3, 5}, {9, 6}, {20, 12}, {33, 30}, {50, 50}});
    EXPECT_EQ(accused_in(v), parts_of({3, 9, 20, 33, 50})) << seed << " " << all_reasons(v);
  }
}

TEST(VerdictGroups, TenPercentSlowAreOneFinding) {
  std::vector<std::pair<std::size_t, double>> slow;
  std::vector<std::size_t> nodes;
  for (std::size_t i = 0; i < 10; ++i) {
    nodes.push_back(4 + 9 * i);
    slow.emplace_back(nodes.back(), 8);
  }
  const auto v = verdict_of(100, 0.003, 5, slow);
  EXPECT_EQ(count_severity(v, "FAIL"), 1U) << all_reasons(v);
  EXPECT_EQ(accused_in(v), parts_of(nodes)) << all_reasons(v);
}

/// The deficit of a part of the slower (or only) kind is not measured from a fast minority.
TEST(VerdictGroups, AFastMinorityIsNoReference) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    auto fleet = Fleet::of(64, 0.0015, seed);
    for (std::size_t i = 0; i < 9; ++i) fleet.rate[7 * i + 1] *= 1.03;
    fleet.rate[30] *= 0.995;
    auto r = fleet.run();
    Fleet::run_retests(r, fleet);
    const auto v = judge(r);
    EXPECT_EQ(count_severity(v, "FAIL") + count_severity(v, "WARN"), 0U) << seed << " " << all_reasons(v);
    for (const auto& f : v.findings)
      EXPECT_EQ(f.text.find("slower than the others"), std::string::npos) << f.text;
  }
}

/// Two kinds of part, not labelled, differ by as much as the fault costs, or by more, or by less.
TEST(VerdictGroups, TwoKindsHideNoSlowNode) {
  for (const double gap : {1.05, 1.1, 1.2, 1.4})
    for (const double percent : {20.0, 30.0, 50.0}) {
      auto fleet = Fleet::of(88, 0.003, static_cast<std::uint64_t>(percent));
      for (std::size_t i = 0; i < 88; ++i) fleet.rate[i] *= i % 8 < 4 ? gap : 1;
      for (std::size_t i = 36; i < 40; ++i) fleet.rate[i] *= 1 - percent / 100;  // a node of the slower kind
      auto r = fleet.run(4);
      Fleet::run_retests(r, fleet);
      const auto v = judge(r);
      EXPECT_EQ(state_of(r, v, "node9"), "FAIL") << gap << " " << percent << " " << all_reasons(v);
      EXPECT_EQ(failed_nodes(r, v), 1U) << gap << " " << percent << " " << all_reasons(v);
    }
}

/// Few parts that are faster say nothing of how slow a healthy part may be.
TEST(VerdictGroups, FewFastPartsHideNoSlowOne) {
  for (const std::size_t n : {8U, 16U, 23U, 40U, 130U})
    for (const std::size_t fast : {1U, 2U, 5U}) {
      if (4 * fast > n) continue;
      auto fleet = Fleet::of(n, 0.003, n + fast);
      for (std::size_t i = 0; i < fast; ++i) fleet.rate[i] *= 1.3;
      fleet.rate[n - 1] *= 0.8;
      auto r = fleet.run();
      Fleet::run_retests(r, fleet);
      const auto v = judge(r);
      EXPECT_EQ(accused_in(v), parts_of({n - 1})) << n << " " << fast << " " << all_reasons(v);
    }
}

TEST(VerdictGroups, UnequalFaultsOfFewPartsAreEachNamed) {
  using Faults = std::vector<std::pair<std::size_t, double>>;
  for (const auto& [n, slow] : {std::pair<std::size_t, Faults>{7, {{1, 50}, {3, 25}}},
                                {10, {{1, 60}, {3, 30}, {5, 15}}},
                                {16, {{0, 70}, {3, 50}, {5, 35}, {9, 20}, {12, 12}}}})
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      std::vector<std::size_t> nodes;
      for (const auto& [node, percent] : slow) nodes.push_back(node);
      const auto v = verdict_of(n, 0.001, seed, slow);
      EXPECT_EQ(accused_in(v), parts_of(nodes)) << n << " " << seed << " " << all_reasons(v);
    }
}

/// Sixteen that are slow by less than a fault share a chassis; the four that fail do not, and were told to be
/// in it.
TEST(VerdictGroups, APlaceIsThatOfTheMembersListed) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    auto fleet = Fleet::of(128, 0.003, seed);
    for (const std::size_t i : {34U, 64U, 80U, 106U}) fleet.rate[i] *= 0.9;
    for (std::size_t i = 112; i < 128; ++i) fleet.rate[i] *= 0.976;
    auto r = fleet.run();
    auto& node = r.inventory["node"];
    node.entity = rows_of_kind(r, "node");
    for (std::size_t i = 0; i < 128; ++i) node.text["chassis_info"].push_back("c" + std::to_string(i / 16));
    Fleet::run_retests(r, fleet);
    const auto v = judge(r);
    ASSERT_EQ(v.findings.front().severity, "FAIL") << seed << all_reasons(v);
    EXPECT_THAT(v.findings.front().text, Not(HasSubstr("chassis"))) << seed;
  }
}

/// What is slow together in one chassis is a fault there; firmware that explains it is a matter of
/// configuration.
TEST(VerdictGroups, SlowPartsOfOneChassisFail) {
  for (const std::size_t bad : {1U, 2U, 3U, 4U}) {
    auto fleet = Fleet::of(64, 0.002, bad);
    std::vector<std::size_t> nodes;
    for (std::size_t i = 0; i < bad; ++i) {
      fleet.rate[20 + i] *= 0.92;
      nodes.push_back(20 + i);
    }
    auto r = fleet.run();
    auto& node = r.inventory["node"];
    node.entity = rows_of_kind(r, "node");
    for (std::size_t i = 0; i < 64; ++i) node.text["chassis_info"].push_back("c" + std::to_string(i / 4));
    Fleet::run_retests(r, fleet);
    const auto v = judge(r);
    EXPECT_EQ(accused_in(v), parts_of(nodes)) << bad << " " << all_reasons(v);
    if (bad >= 3) {
      EXPECT_THAT(v.findings.front().text, HasSubstr("chassis = c5"));
    }
  }
}

/// 15 of 64 (more than a fifth) slow by 11 %, beside 3 by 6 %: who is slower is not judged milder.
TEST(VerdictGroups, SlowerPartsAreNotJudgedMilder) {
  for (const std::uint64_t seed : {3, 4, 5, 6}) {
    std::vector<std::pair<std::size_t, double>> slow = {{1, 6}, {5, 6}, {60, 6}};
    std::vector<std::size_t> slower;
    for (std::size_t i = 0; i < 15; ++i) {
      slow.emplace_back(8 + 3 * i, 11);
      slower.push_back(8 + 3 * i);
    }
    const auto v = verdict_of(64, 0.002, seed, slow);
    auto others = accused_in(v);
    for (const auto& name : parts_of(slower)) EXPECT_EQ(others.erase(name), 1U) << name << all_reasons(v);
    for (const std::size_t six : {1, 5, 60}) others.erase(part_of(six));
    EXPECT_TRUE(others.empty()) << seed << all_reasons(v);
  }
}

/// Parts of one model do not differ by a quarter: a minority that does is slow, however many they are. Of two
/// halves nobody can tell.
TEST(VerdictGroups, AMinorityThatIsFarSlowerFailsWhateverItsSize) {
  for (const std::size_t n : {8U, 12U, 16U, 23U, 24U, 64U})
    for (const double percent : {25.0, 50.0, 90.0})
      for (std::size_t bad = 1; 2 * bad <= n; bad += 1 + n / 16) {
        std::vector<std::pair<std::size_t, double>> slow;
        std::vector<std::size_t> nodes;
        for (std::size_t i = 0; i < bad; ++i) {
          slow.emplace_back(n - 1 - i, percent);
          nodes.push_back(n - 1 - i);
        }
        const auto v = verdict_of(n, 0.002, bad, slow);
        const auto what = std::to_string(bad) + " of " + std::to_string(n) + ", " + std::to_string(percent);
        if (2 * bad < n) {
          EXPECT_EQ(accused_in(v), parts_of(nodes)) << what << all_reasons(v);
        } else {
          EXPECT_EQ(v.state, "INCONCLUSIVE") << what << all_reasons(v);
        }
      }
}

/// A column of /inventory/node, by the number of the node.
void label(results::Results& r, const std::string& column,
           const std::function<const char*(std::size_t)>& value) {
  auto& table = r.inventory["node"];
  table.entity = rows_of_kind(r, "node");
  for (std::size_t i = 0; i < table.entity.size(); ++i) table.text[column].push_back(value(i));
}

/// Half the rate is more than a setting that somebody overlooked may cost.
TEST(VerdictGroups, WhatAnAttributeExplainsIsOpenBeyondAFifth) {
  for (const double share : {0.95, 0.5}) {
    auto fleet = Fleet::of(64, 0.003);
    for (std::size_t i = 0; i < 10; ++i) fleet.rate[3 + 6 * i] *= share;
    auto r = fleet.run();
    label(r, "bios", [](std::size_t i) { return i % 6 == 3 && i < 60 ? "2.1" : "2.4"; });
    const auto v = judge(r);
    EXPECT_NE(find_kind(v, "mismatch"), nullptr) << share << all_reasons(v);
    EXPECT_EQ(v.state, share < 0.8 ? "INCONCLUSIVE" : "WARN") << all_reasons(v);
  }
}

TEST(VerdictGroups, AConfigurationExplainsNoPartThatHasAnother) {
  auto fleet = Fleet::of(64, 0.003);
  for (std::size_t i = 0; i < 11; ++i) fleet.rate[i] *= 0.95;
  auto r = fleet.run();
  label(r, "bios", [](std::size_t i) { return i < 10 ? "2.1" : "2.4"; });
  EXPECT_EQ(Fleet::run_retests(r, fleet), 1U);
  const auto v = judge(r);
  EXPECT_EQ(state_of(r, v, "node10"), "FAIL") << "as slow as those with 2.1, without it";
  EXPECT_EQ(count_severity(v, "FAIL"), 1U);
  EXPECT_NE(state_of(r, v, "node3"), "FAIL");
}

TEST(VerdictGroups, AConfigurationOfMostlySoundPartsExplainsNothing) {
  auto fleet = Fleet::of(64, 0.003);
  for (std::size_t i = 0; i < 5; ++i) fleet.rate[i] *= 0.9;
  auto r = fleet.run();
  label(r, "board", [](std::size_t i) { return i < 14 ? "b" : "a"; });
  EXPECT_EQ(Fleet::run_retests(r, fleet), 1U);
  const auto v = judge(r);
  for (const char* name : {"node0", "node1", "node2", "node3", "node4"})
    EXPECT_EQ(state_of(r, v, name), "FAIL");
  for (const auto& f : v.findings) EXPECT_THAT(f.text, Not(HasSubstr("explained by")));
}

/// The middle of the clocks lies between the halves, so that no part stands out, and at equal clock all are
/// alike: it was PASS.
TEST(VerdictGroups, ThrottlingOfHalfTheFleetIsTold) {
  for (const auto& [nodes, throttled] : {std::pair{12, 6}, {64, 32}, {64, 40}}) {
    simulate::Spec spec;
    spec.nodes = nodes;
    spec.metrics = simulate::pick_metrics({"gemm", "memory"});
    spec.seed = 5;
    spec.clock_cv = 0.001;
    const auto healthy = simulate::run(spec);
    EXPECT_EQ(healthy.verdict->state, "PASS") << all_reasons(*healthy.verdict);
    spec.faults = {simulate::parse_fault("throttle:node=0-" + std::to_string(throttled - 1) + ",percent=12")};
    const auto r = simulate::run(spec);
    const auto split = std::ranges::find(r.verdict->findings, "split", &results::Finding::kind);
    ASSERT_NE(split, r.verdict->findings.end()) << nodes << all_reasons(*r.verdict);
    EXPECT_EQ(split->severity, "WARN");
    EXPECT_EQ(split->members.size(), std::min(throttled, nodes - throttled));
    EXPECT_THAT(split->text,
                HasSubstr(throttled > nodes / 2 ? "; their clocks are 13" : "; their clocks are 12"));
    EXPECT_THAT(split->text, HasSubstr("compare their power and cooling"));
    EXPECT_TRUE(accused_in(*r.verdict).empty());
  }
}

/// A note about a part must not take the place of the warning that small populations give.
TEST(VerdictGroups, ATenthOfTheRateAmongFourOrFiveIsNoNote) {
  for (const std::size_t parts : {4U, 5U}) {
    auto fleet = Fleet::of(parts, 0.005, 1);
    fleet.rate[1] *= 0.1;
    const auto v = judge(fleet.run());
    EXPECT_NE(v.state, "PASS") << parts << all_reasons(v);
    EXPECT_EQ(v.findings.size(), 1U) << parts;
  }
}

TEST(VerdictGroups, APartBelowTheThresholdDoesNotFailWithItsNeighbour) {
  auto fleet = Fleet::of(24, 0.001);
  fleet.rate[6] *= 0.8;
  fleet.rate[7] *= 0.976;
  auto r = fleet.run(2);
  Fleet::run_retests(r, fleet);
  const auto v = judge(r);
  std::size_t failed = 0;
  for (const auto& state : v.entities)
    if (state.state == "FAIL" && r.entities[static_cast<std::size_t>(state.entity)].kind == "device")
      ++failed;
  EXPECT_EQ(failed, 1U) << all_reasons(v);
}

}  // namespace
}  // namespace assay
