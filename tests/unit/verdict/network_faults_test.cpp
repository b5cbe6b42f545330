// SPDX-License-Identifier: Apache-2.0
// Several faults of different strength in one network, over all metrics of pairs, with retests.
#include <set>

#include "tests/unit/verdict/network_rig.hpp"
#include "verdict/propose_limits.hpp"

namespace assay {
namespace {

using namespace network_rig;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSubsetOf;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

std::set<std::string> named(const results::VerdictData& v, const std::string& severity) {
  std::set<std::string> names;
  for (const auto& f : v.findings)
    if (f.severity == severity) names.insert(f.name);
  return names;
}

double deficit_of(const results::VerdictData& v, const std::string& name) {
  for (const auto& f : v.findings)
    if (f.name == name && f.reference_kind == "peers" && f.deficit) return *f.deficit;
  return -1;
}

/// A retest of one case pairs parts that are suspects of another with the faulty one.
TEST(VerdictNetwork, ASlowPartnerSaysNothingOfANode) {
  const auto below = simulate::run(all_pairs(32, 4, 22, {"slow:leaf=3,percent=5", slow_nic(25, 20)}));
  EXPECT_THAT(named(*below.verdict, "FAIL"), UnorderedElementsAre("sim25"));
  EXPECT_THAT(named(*below.verdict, "WARN"), IsSubsetOf({"switch:L3"}));
  auto uneven = all_pairs(24, 0, 6, {slow_nic(12, 65)});
  uneven.nic_cv = 0.01;
  EXPECT_THAT(named(*simulate::run(uneven).verdict, "FAIL"), UnorderedElementsAre("sim12"));
}

TEST(VerdictNetwork, OfTwoUnequalNicsEachHasItsOwnDeficit) {
  const auto r = simulate::run(all_pairs(24, 0, 1, {slow_nic(15, 10), slow_nic(4, 65)}));
  EXPECT_THAT(named(*r.verdict, "FAIL"), UnorderedElementsAre("sim04", "sim15"));
  EXPECT_NEAR(deficit_of(*r.verdict, "sim15"), 0.10, 0.03);
  EXPECT_NEAR(deficit_of(*r.verdict, "sim04"), 0.65, 0.03);
}

TEST(VerdictNetwork, NodesBelowASwitchAreToldFromIt) {
  // One of three nodes of a switch is as it should be.
  const auto one = simulate::run(all_pairs(7, 3, 1, {slow_nic(2, 99.9), slow_nic(1, 65), slow_nic(5, 99.9)}));
  EXPECT_THAT(named(*one.verdict, "FAIL"), UnorderedElementsAre("sim01", "sim02", "sim05"));
  EXPECT_THAT(named(*one.verdict, "WARN"), IsSubsetOf({"sim01"}));
  // Both of two, whose pair below the switch is slow, too.
  const auto both = simulate::run(all_pairs(5, 4, 19, {slow_nic(0, 99), slow_nic(1, 90)}));
  EXPECT_THAT(named(*both.verdict, "FAIL"), UnorderedElementsAre("sim00", "sim01"));
}

TEST(VerdictNetwork, SlowNodesBelowASwitchAccuseNoOther) {
  const auto failed = [](std::uint64_t seed, const std::vector<std::string>& faults) {
    return named(*simulate::run(all_pairs(24, 6, seed, faults)).verdict, "FAIL");
  };
  const auto nodes = [](const std::string& which) { return "slow:node=" + which + ",nic=0,percent=65"; };
  for (const std::uint64_t seed : {3, 33, 35}) {
    // The fourth of its nodes is as it should be, so the switch is.
    EXPECT_THAT(failed(seed, {nodes("8-10")}), UnorderedElementsAre("sim08", "sim09", "sim10"));
    // Both faults, and no path to another switch.
    EXPECT_THAT(failed(seed, {"slow:leaf=2,percent=30", nodes("9+10")}),
                UnorderedElementsAre("switch:L2", "sim09", "sim10"));
    EXPECT_THAT(failed(seed, {nodes("8-11")}), Each(AnyOf("switch:L2", "sim08", "sim09", "sim10", "sim11")));
    // What the switch takes from its nodes is not theirs.
    EXPECT_THAT(failed(seed, {"slow:leaf=2,percent=50", slow_nic(2, 30)}),
                UnorderedElementsAre("switch:L2", "sim02"));
  }
}

TEST(VerdictNetwork, WhatANicSendsIsHeldAgainstItsFloor) {
  for (const std::string way : {"tx", "rx"}) {
    const auto r =
        simulate::run(all_pairs(6, 0, 3, {slow_nic(3, 30) + ",direction=" + way, slow_nic(0, 99.9)}));
    EXPECT_THAT(named(*r.verdict, "FAIL"), UnorderedElementsAre("sim00", "sim03")) << way;
  }
}

/// All NICs of all nodes at a quarter of their rate: peers see nothing.
TEST(VerdictNetwork, NicsMeasuredAloneHaveTheFloorOfANic) {
  for (const std::int64_t nics : {1, 4, 8}) {
    auto spec = all_pairs(4, 0, 1, {"slow:node=0-3,nic=0-" + std::to_string(nics - 1) + ",percent=75"});
    spec.devices_per_node = spec.nics_per_node = nics;
    EXPECT_EQ(simulate::run(spec).verdict->state, "FAIL") << nics;
  }
}

/// Time may be over before a retest.
TEST(VerdictNetwork, AHundredthOfTheRateNeedsNoRetest) {
  const auto without_retest = [](double percent) {
    auto r = simulate::run(all_pairs(6, 0, 3, {slow_nic(3, percent)}));
    std::erase_if(r.cases, [](const auto& c) { return c.name.find(".c") != std::string::npos; });
    r.inventory.erase("nic");  // no rate of the line, so no floor
    return verdict::judge(r, verdict::options_from(r));
  };
  EXPECT_THAT(named(without_retest(99), "FAIL"), UnorderedElementsAre("sim03"));
  EXPECT_THAT(named(without_retest(50), "FAIL"), IsEmpty());
  EXPECT_THAT(named(without_retest(50), "WARN"), UnorderedElementsAre("sim03"));
}

/// Slow in less than half of the samples: no median shows it.
TEST(VerdictNetwork, ANicThatIsSlowNowAndThenIsNamed) {
  for (const char* fault :
       {"slow:node=3,nic=0,percent=90,duty=0.45", "slow:node=3,nic=0,factor=0.001,duty=0.3"}) {
    auto spec = all_pairs(10, 0, 1, {fault});
    spec.samples = 100;
    const auto r = simulate::run(spec);
    EXPECT_THAT(named(*r.verdict, "WARN"), UnorderedElementsAre("sim03"));
    EXPECT_THAT(named(*r.verdict, "FAIL"), IsEmpty());
  }
}

TEST(VerdictNetwork, ALimitOfOneNodeFailsNoOther) {
  const auto spec = all_pairs(8, 0, 1, {slow_nic(3, 50)});
  auto r = screened(spec);
  retested(r, spec);
  verdict::Options options;
  options.limits_text =
      "[[limit]]\nmetric = \"p2p/bandwidth-uni-*:bandwidth\"\ndevice = \"sim03\"\nmin = \"40 GB/s\"\n";
  const auto v = verdict::judge(r, options);
  EXPECT_EQ(state_of(r, v, "sim03"), "FAIL");
  for (const char* other : {"sim00", "sim01", "sim02", "sim04", "sim05", "sim06", "sim07"})
    EXPECT_EQ(state_of(r, v, other), "PASS") << other;
}

TEST(VerdictNetwork, HalfOfThePairsAreSlowWhereAThirdOfTheNodesIs) {
  for (const std::uint64_t seed : {88, 31337}) {
    const Spec spec = all_pairs(150, 0, seed, {"slow:node=0-59,nic=0,percent=30"});
    auto r = screened(spec);
    const auto v = retested(r, spec);
    for (int node = 0; node < 150; ++node) {
      const std::string name = (node < 10 ? "sim00" : node < 100 ? "sim0" : "sim") + std::to_string(node);
      EXPECT_EQ(state_of(r, v, name), node < 60 ? "FAIL" : "PASS") << name << ", seed " << seed;
    }
  }
}

/// From 24 nodes on, the mean of both ways is what screening ranks pairs by.
TEST(VerdictNetwork, APairIsToldByTheWayThatIsSlowAndOnce) {
  for (const double percent : {20.0, 90.0})
    for (const bool both : {false, true}) {
      auto faults = slow_pair(3, 4, percent);
      if (!both) faults.pop_back();
      Spec spec = network(32, 0, faults);
      spec.metrics = simulate::pick_metrics({"p2p"});
      const auto v = whole_run(spec);
      ASSERT_EQ(accused(v).size(), 1U) << percent << both << all_reasons(v);
      EXPECT_NEAR(*v.findings[0].deficit, percent / 100, 0.02) << v.findings[0].text;
      EXPECT_EQ(v.findings[0].text.find("both ways") != std::string::npos, both) << v.findings[0].text;
    }
}

/// Half of a network at a tenth of the rate: nobody can tell which half is right, but it is no PASS.
TEST(VerdictNetwork, HalfOfTheLinksAtATenthIsOpen) {
  for (const std::int64_t nodes : {8, 16, 32}) {
    std::string half;
    for (std::int64_t node = 0; node < nodes / 2; ++node)
      half += (half.empty() ? "" : "+") + std::to_string(2 * node);
    Spec spec = network(nodes, 0, {"slow:node=" + half + ",nic=0,percent=90"});
    auto r = screened(spec);
    const auto v = judge(r);
    EXPECT_THAT(v.state, ::testing::AnyOf("INCONCLUSIVE", "FAIL", "WARN")) << nodes;
    EXPECT_FALSE(accused(v).empty()) << nodes;
  }
}

/// Others take the cores of ranks by turns: which links are slow is chance.
TEST(VerdictNetwork, LinksOfRanksWithoutTheirCoresAreNotUnlike) {
  auto r = screened(network(16, 0, {}));
  for (auto& c : r.cases)
    for (auto& m : c.metrics)
      for (std::size_t i = 0; m.per_sample && i < m.values.size(); ++i) {
        const std::size_t row = i / c.samples();
        const auto a = std::min(c.source[row], c.destination[row]),
                   b = std::max(c.source[row], c.destination[row]);
        if ((5 * a + 3 * b) % 7 < 3) m.values[i] /= 10;
      }
  const auto splits = [&](const char* severity) {
    const auto v = judge(r);
    return std::ranges::count_if(v.findings, [&](const results::Finding& f) {
      return f.kind == "split" && f.severity == severity &&
             f.text.find("links are slow") != std::string::npos;
    });
  };
  ASSERT_EQ(splits("WARN"), 1);
  for (auto& c : r.cases) {
    results::Metric share{
        results::core_share, "1", results::Better::higher, false, results::Role::covariate, false, {}};
    share.values.assign(c.entity.size(), 0.5);
    c.metrics.push_back(share);
  }
  EXPECT_EQ(splits("WARN"), 0);
  EXPECT_EQ(splits("INFO"), 1);
}

/// A healthy node that is 2.5 % below the others was a member, in 4 of 28 runs like this one.
TEST(VerdictNetwork, AMemberOfAFaultLacksThatMuchItself) {
  std::vector<std::string> faults;
  for (const int node : {5, 35, 46, 4, 39}) faults.push_back(slow_nic(node, 30));
  for (const int node : {40, 7, 13, 37}) faults.push_back(slow_nic(node, 10));
  for (const int node : {1, 15, 41}) faults.push_back(slow_nic(node, 60));
  auto spec = all_pairs(48, 0, 5061, faults);
  spec.nic_cv = 0.01;
  const auto r = simulate::run(spec);
  bool told = false;
  for (const auto& f : r.verdict->findings) {
    told = told || (f.severity == "WARN" && f.name == "sim14");
    if (f.severity != "FAIL") continue;
    EXPECT_THAT(f.members, Not(Contains("sim14"))) << f.text;
    if (f.kind == "split") {
      EXPECT_EQ(f.members.size(), faults.size());
    }
  }
  EXPECT_TRUE(told);
}

/// Single pairs meet traffic, others in each run: limits from the worst of them failed most runs of 24 nodes.
TEST(VerdictNetwork, ProposedLimitsHoldForTheNextRun) {
  for (const std::int64_t nodes : {8, 24})
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      auto spec = all_pairs(nodes, 0, seed, {});
      const auto proposed = verdict::propose_limits(simulate::run(spec), "run.h5", "PASS");
      EXPECT_THAT(proposed.text, HasSubstr("# from the spread of pairs (other traffic)"));
      spec.run = 1;
      const auto next = simulate::run(spec);
      auto options = verdict::options_from(next);
      options.limits_text = proposed.text;
      options.limits_name = "limits.toml";
      EXPECT_EQ(verdict::judge(next, options).state, "PASS") << nodes << " nodes, seed " << seed;
    }
}

TEST(VerdictNetwork, TwoNodesDoNotTellHowPairsVary) {
  const auto proposed = verdict::propose_limits(simulate::run(all_pairs(2, 0, 1, {})), "run.h5", "PASS");
  EXPECT_THAT(proposed.uncertain,
              Contains(HasSubstr("6 pairs are too few to show effects of other traffic")));
}

/// What stands for infinite values is no number to be read: notes had a deficit of -nan %.
TEST(VerdictNetwork, LinksWithoutAPossibleValueReadSo) {
  for (const std::uint64_t seed : {1, 2, 3, 100016}) {
    auto spec = all_pairs(6, 3, seed, {"dead:node=3,nic=0,value=inf"});
    spec.link_cv = 0.005;
    const auto r = simulate::run(spec);
    EXPECT_THAT(named(*r.verdict, "FAIL"), UnorderedElementsAre("sim03"));
    bool told = false;
    for (const auto& f : r.verdict->findings) {
      for (const char* number : {"nan", "n/a", "kB/s"}) EXPECT_THAT(f.text, Not(HasSubstr(number)));
      told = told || f.text.find(" without a possible value against ") != std::string::npos;
    }
    EXPECT_TRUE(told);
  }
}

}  // namespace
}  // namespace assay
