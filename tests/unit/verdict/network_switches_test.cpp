// SPDX-License-Identifier: Apache-2.0
// Slow switches whose links are near a floor, and two of them at once.
#include <set>

#include "tests/unit/verdict/network_rig.hpp"

namespace assay {
namespace {

using namespace network_rig;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

/// The parts that FAIL; of a path between two switches both of its name.
std::set<std::string> failed(const Spec& spec) {
  const auto run = simulate::run(spec);
  std::set<std::string> names;
  for (const auto& f : run.verdict->findings)
    if (f.severity == "FAIL") names.insert(f.name);
  // No switch fails without a finding that names it.
  for (const auto& state : run.verdict->entities) {
    const auto& e = run.entities[static_cast<std::size_t>(state.entity)];
    if (e.kind == "switch" && state.state == "FAIL") {
      EXPECT_THAT(names, Contains(HasSubstr(e.name)));
    }
  }
  return names;
}

std::set<std::string> failed(std::int64_t nodes, std::int64_t leaves, std::uint64_t seed,
                             const std::vector<std::string>& faults, std::int64_t devices = 1) {
  Spec spec = all_pairs(nodes, leaves, seed, faults);
  spec.devices_per_node = devices;
  return failed(spec);
}

TEST(VerdictSwitches, LinksNearTheFloorAreToldByTheirSwitch) {
  for (const std::uint64_t seed : {1, 2}) {
    EXPECT_THAT(failed(64, 8, seed, {"slow:leaf=2,percent=15"}), UnorderedElementsAre("switch:L2"));
    EXPECT_THAT(failed(24, 4, seed, {"slow:leaf=2,percent=15"}), UnorderedElementsAre("switch:L2"));
  }
  // All links of single paths are beyond it.
  EXPECT_THAT(failed(64, 8, 5003, {"slow:leaf=2,percent=15.5"}), UnorderedElementsAre("switch:L2"));
  EXPECT_THAT(failed(144, 12, 5002, {"slow:leaf=1,percent=12"}), UnorderedElementsAre("switch:L1"));
}

TEST(VerdictSwitches, OfTwoSwitchesNoNodeBelowIsNamed) {
  EXPECT_THAT(failed(24, 6, 1, {"slow:leaf=1,percent=40", "slow:leaf=2,percent=20"}),
              UnorderedElementsAre("switch:L1", "switch:L2"));
  EXPECT_THAT(failed(12, 6, 2, {"slow:leaf=2,percent=25,direction=tx", "slow:leaf=5,percent=25"}),
              UnorderedElementsAre("switch:L2", "switch:L5"));
  // A node that is slower than its switch is.
  EXPECT_THAT(failed(8, 4, 1, {"slow:leaf=1,percent=60", slow_nic(2, 90)}),
              UnorderedElementsAre("switch:L1", "sim02"));
}

TEST(VerdictSwitches, WhereWhatStaysBelowItIsAsSlowItsNodesAreAtFault) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    EXPECT_THAT(failed(32, 8, seed, {"slow:node=4-7,nic=0,percent=30"}),
                UnorderedElementsAre("sim04", "sim05", "sim06", "sim07"));
    EXPECT_THAT(failed(12, 4, seed, {slow_nic(0, 30), slow_nic(1, 40), slow_nic(2, 60)}),
                UnorderedElementsAre("sim00", "sim01", "sim02"));
    // What crosses the switch is slow, what stays below it is not, but for one node.
    EXPECT_THAT(failed(32, 8, seed, {"slow:leaf=1,percent=30", slow_nic(5, 60)}),
                UnorderedElementsAre("switch:L1", "sim05"));
  }
}

/// Of the three switches of a rail two are slow, and so is what the third carries.
TEST(VerdictSwitches, TheSwitchesOfARailAreHeldAgainstEachOther) {
  for (const std::uint64_t seed : {2, 3, 4})
    EXPECT_THAT(failed(24, 6, seed, {"slow:leaf=1,percent=50", "slow:leaf=3,percent=20"}, 2),
                UnorderedElementsAre("switch:L1", "switch:L3 and switch:L5"));
  // Too few partners are left to measure it again: a warning.
  EXPECT_THAT(failed(24, 6, 1, {"slow:leaf=1,percent=50", "slow:leaf=3,percent=20"}, 2),
              UnorderedElementsAre("switch:L3 and switch:L5"));
}

/// Rails of unlike speed: what is said to be usual was measured on links like those of the part.
TEST(VerdictSwitches, TheUsualRateIsThatOfLinksLikeItsOwn) {
  Spec spec = network(24, 0, {"slow:nic=1,percent=60", "slow:node=3,nic=0,percent=40"});
  spec.devices_per_node = 2;
  const auto run = simulate::run(spec);
  bool named = false;
  for (const auto& f : run.verdict->findings) {
    if (f.severity != "FAIL" || f.name != "sim03/nic0") continue;
    named = true;
    EXPECT_GT(*f.reference, 40e9);
    EXPECT_NEAR(*f.value / *f.reference, 0.6, 0.05);
  }
  EXPECT_TRUE(named) << all_reasons(*run.verdict);
}

/// Most pairs below the switches are slow, and were taken for what is usual there.
TEST(VerdictSwitches, OfFiveNodesBelowTwoSwitchesTwoSlowOnesAreNamed) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    Spec spec = few(5, {slow_nic(0, 50), slow_nic(4, 60)});
    spec.leaves = 2;
    spec.metrics = simulate::pick_metrics({"p2p/latency-8-cross-mpi"});
    spec.samples = 10;
    spec.seed = seed;
    EXPECT_THAT(failed(spec), UnorderedElementsAre("sim00", "sim04")) << seed;
  }
}

/// All but one node are below one switch: it is measured again with those, too.
TEST(VerdictSwitches, APartWithOnePartnerAcrossIsConfirmed) {
  Spec spec = few(12, {slow_nic(0, 50)});
  spec.leaves = 2;
  spec.metrics = simulate::pick_metrics({"p2p/latency-8-cross-mpi"});
  auto r = screened(spec);
  auto& switches = r.inventory["nic"].text.at("switch");
  for (auto& name : switches) name = "L0";
  switches.back() = "L1";
  const auto v = retested(r, spec);
  EXPECT_EQ(v.state, "FAIL") << all_reasons(v);
  EXPECT_EQ(worst(v).name, "sim00");
  EXPECT_THAT(worst(v).text, HasSubstr("confirmed by the retest"));
}

TEST(VerdictSwitches, WhatASwitchLosesToAnotherSlowOneIsNotItsOwn) {
  const auto names = failed(
      24, 6, 33, {"slow:leaf=1,percent=70,direction=tx", slow_nic(8, 95), "slow:leaf=3,percent=12"}, 2);
  EXPECT_THAT(names, Contains("switch:L1"));
  EXPECT_THAT(names, Not(Contains("switch:L5")));
}

TEST(VerdictSwitches, ASwitchThatIsSlowOneWayHidesNoSlowNic) {
  EXPECT_THAT(failed(24, 6, 1, {"slow:node=23,nic=1,percent=80", "slow:leaf=5,percent=95,direction=tx"}, 2),
              UnorderedElementsAre("switch:L5", "sim23/nic1"));
  EXPECT_THAT(failed(8, 3, 2095,
                     {"slow:leaf=1,percent=60,direction=tx", "slow:node=4,nic=0,percent=40,direction=rx"}, 4),
              UnorderedElementsAre("switch:L1", "sim04/nic0"));
}

TEST(VerdictSwitches, ASlowNodeDoesNotHideThatAllLinksAcrossAreSlow) {
  EXPECT_THAT(failed(11, 2, 1012, {"slow:leaf=1,percent=12", slow_nic(4, 70)}),
              UnorderedElementsAre("sim04", "cluster"));
}

TEST(VerdictSwitches, ASlowNicHidesNoSlowRailAndIsNamedBesideIt) {
  EXPECT_THAT(failed(8, 0, 1, {"slow:nic=0,percent=25", slow_nic(3, 70)}, 4),
              UnorderedElementsAre("sim03/nic0"));
  EXPECT_THAT(failed(3, 0, 1020, {"slow:nic=0,percent=90", "slow:node=0,nic=1,percent=70"}, 2),
              Contains("sim00/nic1"));
}

/// Most pairs across switches are slow, and equal switches hide each other.
TEST(VerdictSwitches, AThirdOfTheSwitches) {
  EXPECT_THAT(failed(48, 6, 1, {"slow:leaf=0+1,percent=10"}), UnorderedElementsAre("switch:L0", "switch:L1"));
  EXPECT_THAT(failed(64, 8, 1, {"slow:leaf=0+1+2,percent=30"}),
              UnorderedElementsAre("switch:L0", "switch:L1", "switch:L2"));
  for (const std::uint64_t seed : {1, 2})
    EXPECT_THAT(failed(128, 16, seed, {"slow:leaf=0+1+2+3+4,percent=30"}),
                UnorderedElementsAre("switch:L0", "switch:L1", "switch:L2", "switch:L3", "switch:L4"));
}

/// Traffic slows single pairs, most of them of nodes whose partners are below slow switches or slow.
TEST(VerdictSwitches, OtherPairsOfHealthyNodesAreNoFindings) {
  std::set<std::string> switches, nodes;
  std::string leaves, every_second;
  for (int i = 0; i < 8; ++i) {
    switches.insert("switch:L" + std::to_string(i));
    leaves += (i > 0 ? "+" : "") + std::to_string(i);
  }
  EXPECT_EQ(failed(80, 20, 55002, {"slow:leaf=" + leaves + ",percent=30"}), switches);
  for (int i = 0; i < 48; i += 2) {
    nodes.insert((i < 10 ? "sim0" : "sim") + std::to_string(i));
    every_second += (i > 0 ? "+" : "") + std::to_string(i);
  }
  EXPECT_EQ(failed(48, 6, 100, {"slow:node=" + every_second + ",nic=0,percent=30"}), nodes);
}

TEST(VerdictSwitches, AHealthyOneBesideTwoThatFailIsNotNamed) {
  EXPECT_THAT(
      failed(8, 5, 1, {"slow:leaf=0,percent=40,direction=tx", "slow:leaf=1,percent=60,direction=tx"}, 4),
      UnorderedElementsAre("switch:L0", "switch:L1"));
  for (const std::uint64_t seed : {1, 2, 3, 4})
    EXPECT_THAT(
        failed(12, 3, seed, {"slow:leaf=1,percent=40,direction=rx", "slow:leaf=2,percent=30,direction=tx"}),
        UnorderedElementsAre("switch:L1", "switch:L2"));
  // Two of three: what is left may be either of two.
  EXPECT_THAT(failed(12, 3, 1, {"slow:leaf=1,percent=90", "slow:leaf=2,percent=20"}),
              UnorderedElementsAre("switch:L1", "switch:L0 and switch:L2"));
}

/// Severity and text of all findings but notes.
std::vector<std::string> told(std::int64_t nodes, std::int64_t leaves, std::uint64_t seed,
                              const std::vector<std::string>& faults) {
  std::vector<std::string> all;
  const auto run = simulate::run(all_pairs(nodes, leaves, seed, faults));
  for (const auto& f : run.verdict->findings)
    if (f.severity != "INFO") all.push_back(f.severity + " " + f.text);
  return all;
}

/// Each path has a slow switch: no link says which one is not.
TEST(VerdictSwitches, WhereAllLinksAcrossAreSlowNoSwitchIsNamed) {
  using ::testing::AllOf;
  using ::testing::ElementsAre;
  using ::testing::StartsWith;
  for (const std::uint64_t seed : {1, 2, 3}) {
    for (const double percent : {7.0, 20.0, 50.0, 99.9}) {
      const auto fault = ",percent=" + std::to_string(percent);
      // Below the floor it is a fault, else a warning.
      const std::string severity = percent < 10 ? "WARN" : "FAIL";
      EXPECT_THAT(told(24, 4, seed, {"slow:leaf=0-2" + fault}),
                  ElementsAre(StartsWith(severity + " cluster: all links across switches")))
          << percent << " seed " << seed;
    }
    EXPECT_THAT(told(12, 2, seed, {"slow:leaf=0,percent=8"}),
                ElementsAre(AllOf(StartsWith("WARN cluster: all links across switches"),
                                  HasSubstr("switch:L0, switch:L1"))));
    // Near the floor of the links half of them are beyond it.
    EXPECT_THAT(told(12, 2, seed, {"slow:leaf=0,percent=12"}), ElementsAre(StartsWith("FAIL ")));
    // Of unequal ones the slower are told apart.
    EXPECT_THAT(
        failed(24, 4, seed, {"slow:leaf=0,percent=90", "slow:leaf=1,percent=50", "slow:leaf=2,percent=30"}),
        UnorderedElementsAre("switch:L0", "switch:L1", "switch:L2 and switch:L3"));
  }
}

/// The fourth receives only what these send.
TEST(VerdictSwitches, ThreeThatSendSlowlyAccuseNoReceiver) {
  for (const std::uint64_t seed : {1, 2, 3, 4})
    for (const char* percent : {"20", "50"})
      EXPECT_THAT(failed(24, 4, seed, {"slow:leaf=0-2,direction=tx,percent=" + std::string(percent)}),
                  UnorderedElementsAre("switch:L0", "switch:L1", "switch:L2"))
          << percent << " seed " << seed;
}

TEST(VerdictSwitches, OneSlowInOneWayIsNamedBesideOneThatHasNextToNothingLeft) {
  for (const std::uint64_t seed : {1, 2, 3})
    for (const char* way : {"tx", "rx"})
      EXPECT_THAT(failed(20, 4, seed,
                         {"slow:leaf=0,percent=90", "slow:leaf=1,percent=20,direction=" + std::string(way)}),
                  UnorderedElementsAre("switch:L0", "switch:L1"))
          << way << " seed " << seed;
}

}  // namespace
}  // namespace assay
