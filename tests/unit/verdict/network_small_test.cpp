// SPDX-License-Identifier: Apache-2.0
// Networks of so few nodes that only the pattern of slow pairs tells.
#include <gmock/gmock.h>

#include <map>
#include <set>

#include "tests/unit/verdict/network_rig.hpp"

namespace assay {
namespace {

using namespace network_rig;
using ::testing::ElementsAre;

TEST(VerdictNetwork, HubOfFourNodesIsNamedAndItsPartnersAreNot) {
  const auto spec = few(4, {slow_nic(2, 50)});
  auto r = screened(spec);
  auto v = judge(r);
  ASSERT_EQ(accused(v), std::vector<std::string>{"node sim02"});
  EXPECT_EQ(worst(v).severity, "WARN");
  EXPECT_EQ(state_of(r, v, "sim02"), "WARN");
  EXPECT_EQ(state_of(r, v, "sim00"), "PASS");
  v = retested(r, spec);
  ASSERT_EQ(accused(v), std::vector<std::string>{"node sim02"});
  EXPECT_EQ(worst(v).severity, "FAIL");
  EXPECT_EQ(state_of(r, v, "sim00"), "PASS");
}

TEST(VerdictNetwork, ThreeNodesAreEnoughForAHubAndTwoAreNot) {
  EXPECT_EQ(accused(judge(screened(few(3, {slow_nic(1, 50)})))), std::vector<std::string>{"node sim01"});
  EXPECT_TRUE(accused(judge(screened(few(2, {slow_nic(1, 50)})))).empty());
}

TEST(VerdictNetwork, TwoSlowNicsOfSixAreNamed) {
  // Most links of the network touch one of them. A pair of others is beyond what counts as slow, far from
  // theirs.
  std::vector<std::string> faults = slow_pair(0, 2, 35);
  for (const int node : {1, 4}) faults.push_back(slow_nic(node, 98));
  for (int seed = 1; seed <= seeds(3, 100); ++seed) {
    Spec spec = few(6, faults);
    spec.seed = static_cast<std::uint64_t>(seed);
    auto r = screened(spec);
    const auto v = retested(r, spec);
    EXPECT_THAT(accused(v), testing::IsSupersetOf({"node sim01", "node sim04"})) << seed;
    for (const char* healthy : {"sim03", "sim05"}) EXPECT_EQ(state_of(r, v, healthy), "PASS") << seed;
  }
}

TEST(VerdictNetwork, SlowNicsBelowTwoSwitchesOfTwoNodesAreNoSlowPath) {
  for (const auto& [a, b] : {std::pair(1, 4), std::pair(0, 2), std::pair(3, 5)})
    for (const double percent : {40.0, 97.0, 99.9})
      for (int seed = 1; seed <= seeds(3, 50); ++seed) {
        Spec spec = few(6, {slow_nic(a, percent), slow_nic(b, percent)});
        spec.leaves = 3;
        spec.seed = static_cast<std::uint64_t>(seed);
        const auto v = whole_run(spec);
        EXPECT_THAT(accused(v), testing::UnorderedElementsAre("node sim0" + std::to_string(a),
                                                              "node sim0" + std::to_string(b)))
            << percent << " %, seed " << seed;
        for (const auto& f : v.findings) EXPECT_NE(f.severity, "WARN") << f.text;
      }
}

TEST(VerdictNetwork, AFloorIsOfTheNodeThatHasFewPairsBelowItsSwitchAndFewAcross) {
  // Each node has one partner below its switch and two beyond. Rates of NICs are known here.
  Spec spec = few(4, {slow_nic(1, 60), slow_nic(3, 97) + ",direction=rx"});
  spec.leaves = 2;
  spec.link_cv = 0.08;
  spec.metrics = simulate::pick_metrics({"p2p/bandwidth-*"});
  for (int seed = 1; seed <= seeds(20, 200); ++seed) {
    spec.seed = static_cast<std::uint64_t>(seed);
    auto r = simulate::screen(spec);
    r.info.injected = false;
    const auto v = retested(r, spec);
    for (const auto& f : v.findings) {
      if (f.severity != "FAIL") continue;
      EXPECT_THAT(f.name, testing::AnyOf("sim01", "sim03")) << "seed " << seed << ": " << f.text;
    }
    for (const char* healthy : {"sim00", "sim02"}) EXPECT_NE(state_of(r, v, healthy), "FAIL") << seed;
  }
}

TEST(VerdictNetwork, OneSlowPairOfFourNodesIsALink) {
  EXPECT_THAT(accused(whole_run(few(4, slow_pair(1, 3, 50)))),
              ElementsAre(testing::AnyOf("link sim01/gpu0>sim03/gpu0", "link sim03/gpu0>sim01/gpu0")));
}

TEST(VerdictNetwork, APairWithNextToNothingLeftIsMeasuredAgainAfterASampleEachWay) {
  for (const auto& [percent, state] : {std::pair(95, "FAIL"), std::pair(80, "PASS")}) {
    Spec spec = few(4, slow_pair(1, 3, percent));
    spec.samples = spec.blocks = 1;
    auto r = screened(spec);
    EXPECT_TRUE(accused(judge(r)).empty()) << "too few samples for a warning";
    EXPECT_EQ(retested(r, spec).state, state);
  }
}

/// The verdict on a run in which all ranks had half of their cores, and that of the same run on cores of
/// their own.
struct OnSharedCores {
  results::VerdictData shared, own;
};
OnSharedCores on_shared_cores(const Spec& spec) {
  auto r = screened(spec);
  OnSharedCores out{{}, retested(r, spec)};
  for (auto& c : r.cases) {
    results::Metric share{
        results::core_share, "1", results::Better::higher, false, results::Role::covariate, false, {}};
    share.values.assign(c.entity.size(), 0.5);
    c.metrics.push_back(share);
  }
  out.shared = judge(r);
  return out;
}

TEST(VerdictNetwork, OneSlowPairOnSharedCoresDoesNotFail) {
  const auto v = on_shared_cores(few(5, slow_pair(1, 3, 60)));
  EXPECT_EQ(v.own.state, "FAIL");
  EXPECT_EQ(v.shared.state, "WARN");
  EXPECT_EQ(worst(v.shared).kind + " " + worst(v.shared).level, "shared-core link");
}

TEST(VerdictNetwork, ANodeOnSharedCoresFailsOnlyBelowHalfOfTheRate) {
  for (const auto& [percent, state] : {std::pair(38, "PASS"), std::pair(75, "FAIL")}) {
    const auto v = on_shared_cores(few(6, {slow_nic(3, percent)}));
    EXPECT_EQ(v.own.state, "FAIL") << percent;
    EXPECT_EQ(v.shared.state, state) << percent;
    EXPECT_THAT(worst(v.shared).text,
                testing::HasSubstr(percent < 50 ? "on cores that others use" : "confirmed"));
  }
}

TEST(VerdictNetwork, FewNodesFailByMoreThanHealthyPairsDiffer) {
  EXPECT_EQ(whole_run(few(4, {slow_nic(2, 38)})).state, "FAIL");
  // The same beside pairs that differ by nearly as much.
  std::vector<std::string> faults = slow_pair(0, 1, 24);
  for (const auto& more :
       {slow_pair(1, 3, 12), slow_pair(0, 2, 36), slow_pair(1, 2, 40), slow_pair(2, 3, 38)})
    faults.insert(faults.end(), more.begin(), more.end());
  EXPECT_NE(whole_run(few(4, faults)).state, "FAIL");
}

TEST(VerdictNetwork, ANodeBelowASlowSwitchIsComparedWithTheOthersBelowIt) {
  Spec spec = network(6, 3, {"slow:leaf=1,percent=99"});
  spec.within_cv = 0.006;
  spec.spike_share = 0;
  auto r = screened(spec);
  const simulate::Machine machine(spec);
  const std::set below = {machine.device_row(2), machine.device_row(3)};
  const auto scale = [&](bool retest, const auto& factor) {
    for (auto& c : r.cases)
      for (std::size_t row = 0; c.name.ends_with(".c1") == retest && row < c.source.size(); ++row)
        for (auto& m : c.metrics)
          for (std::size_t i = 0; m.name == "bandwidth" && i < c.samples(); ++i)
            m.values[row * c.samples() + i] *=
                factor(c.source[row], below.contains(c.source[row]) != below.contains(c.destination[row]));
  };
  // What one of its nodes sends across was slowed in the screening only; later all else is faster.
  scale(false, [&](auto from, bool across) { return across && from == machine.device_row(2) ? 0.5 : 1.0; });
  retested(r, spec);
  scale(true, [](auto, bool across) { return across ? 1.0 : 1.7; });
  EXPECT_THAT(accused(judge(r)), ElementsAre("switch switch:L1"));
}

TEST(VerdictNetwork, WeakSuspectsDoNotHideASlowNicOfAFewNodes) {
  Spec spec = network(6, 3, {slow_nic(3, 76)});
  spec.link_cv = 0.1;
  spec.within_cv = 0.006;
  spec.spike_share = 0;
  const simulate::Machine machine(spec);
  const std::set below = {machine.device_row(4), machine.device_row(5)};
  for (spec.seed = 1; spec.seed <= 8; ++spec.seed) {
    auto r = screened(spec);
    // What the nodes of a healthy switch receive was slowed while the links were measured first.
    for (auto& c : r.cases)
      for (std::size_t row = 0; row < c.source.size(); ++row)
        for (auto& m : c.metrics)
          for (std::size_t i = 0; m.name == "bandwidth" && i < c.samples(); ++i)
            if (below.contains(c.destination[row]) && !below.contains(c.source[row]))
              m.values[row * c.samples() + i] *= 0.75;
    const auto v = retested(r, spec);
    for (const auto& f : v.findings) {
      EXPECT_TRUE(f.severity != "FAIL" || f.name == "sim03") << spec.seed << ": " << f.text;
      EXPECT_TRUE(f.severity != "WARN" || f.level == "switch" || f.name == "sim04" || f.name == "sim05")
          << spec.seed << ": " << f.text;
    }
    EXPECT_EQ(worst(v).severity, "FAIL") << spec.seed;
  }
}

TEST(VerdictNetwork, RetestsOfFewPartnersLeaveControls) {
  EXPECT_EQ(whole_run(few(3, {slow_nic(1, 50)})).state, "FAIL");
  const auto v = whole_run(few(5, {slow_nic(1, 60), slow_nic(3, 60)}));
  EXPECT_EQ(accused(v), (std::vector<std::string>{"node sim01", "node sim03"}));
  for (const auto& f : v.findings) EXPECT_NE(f.severity, "WARN") << f.text;
}

TEST(VerdictNetwork, TheWeakerOfTwoSlowNicsIsNotCleared) {
  for (const auto& [strong, weak] : {std::pair(99.9, 60.0), std::pair(75.0, 40.0), std::pair(75.0, 25.0)}) {
    const auto v = whole_run(few(5, {slow_nic(1, strong), slow_nic(3, weak)}));
    EXPECT_EQ(accused(v), (std::vector<std::string>{"node sim01", "node sim03"})) << strong << ", " << weak;
    EXPECT_EQ(worst(v).severity, "FAIL") << strong << ", " << weak;
  }
}

/// Whether a round of the retest of two bad pairs of node 0, of another device each, has two links of a node.
bool two_links_of_a_node(bool one_end_of_a_node) {
  std::vector<std::string> faults = slow_pair(0, 4, 60);
  for (const auto& fault : slow_pair(1, 7, 60)) faults.push_back(fault);
  Spec spec = few(8, faults);
  spec.devices_per_node = 2;
  auto r = screened(spec);
  for (auto& c : r.cases) {
    std::map<std::set<std::int32_t>, std::size_t> pairs;
    for (auto& m : c.metrics) {
      if (m.name != "round") continue;
      m.per_sample = false;
      m.values = std::vector<double>(c.entities(), 1.0);
      for (std::size_t row = 0; one_end_of_a_node && row < c.entities(); ++row)
        m.values[row] = static_cast<double>(
            pairs.try_emplace({c.source[row], c.destination[row]}, pairs.size()).first->second);
    }
  }
  bool two = false;
  for (const auto& retest : wanted_of(r))
    for (const auto& round : retest.rounds) {
      std::set<std::int32_t> nodes;
      for (const auto& link : round)
        for (const std::int32_t row : {link.source, link.destination})
          two = !nodes.insert(r.entities[static_cast<std::size_t>(row)].parent).second || two;
    }
  return two;
}

TEST(VerdictNetwork, PairsThatHadTheirNodesToThemselvesHaveThemAgain) {
  EXPECT_TRUE(two_links_of_a_node(false));
  EXPECT_FALSE(two_links_of_a_node(true));
}

/// On cores that all share, the quota explains only a part of what single messages lose.
void check_quota_of_one_end(double share_of_others) {
  const Spec spec = few(5, slow_pair(1, 3, 60));
  auto r = screened(spec);
  ASSERT_EQ(retested(r, spec).state, "FAIL");
  const simulate::Machine machine(spec);
  const std::int32_t held = machine.device_row(3);
  for (auto& c : r.cases) {
    results::Metric share{
        results::core_share, "1", results::Better::higher, false, results::Role::covariate, false, {}};
    for (std::size_t row = 0; row < c.source.size(); ++row)
      share.values.push_back(c.source[row] == held || c.destination[row] == held ? 0.35 : share_of_others);
    c.metrics.push_back(share);
  }
  r.entities[static_cast<std::size_t>(held)].name = "sim03/cores0";
  auto& nodes = r.inventory["node"];
  for (const auto node : nodes.entity)
    nodes.number["cpu_quota_cores"].push_back(node == machine.node_row(3) ? 0.35 : results::not_taken);
  const auto v = judge(r);
  ASSERT_FALSE(v.findings.empty());
  EXPECT_EQ(worst(v).kind + " " + worst(v).severity, "quota FAIL");
  EXPECT_EQ(state_of(r, v, "sim03"), "FAIL");
  for (const char* healthy : {"sim00", "sim01", "sim02", "sim04"})
    EXPECT_EQ(state_of(r, v, healthy), "PASS") << healthy;
}

TEST(VerdictNetwork, AQuotaOfOneEndDoesNotFailTheOther) {
  for (const double share_of_others : {0.99, 0.45}) {
    SCOPED_TRACE(share_of_others);
    check_quota_of_one_end(share_of_others);
  }
}

TEST(VerdictNetwork, SmallHealthyClustersAccuseNobody) {
  int wrong = 0, runs = 0;
  for (const int nodes : {2, 3, 4, 6, 8, 16, 24, 40})
    for (int seed = 1; seed <= seeds(20, 200); ++seed, ++runs) {
      Spec spec = few(nodes);
      spec.seed = static_cast<std::uint64_t>(seed);
      const auto v = whole_run(spec);
      wrong += accused(v).empty() ? 0 : 1;
      EXPECT_NE(v.state, "FAIL") << nodes << " nodes, seed " << seed;
    }
  EXPECT_LE(wrong, runs / 100);
}

/// Links that differ as much as those of busy virtual machines: a pair is a warning beyond their spread.
TEST(VerdictNetwork, LinksThatAllDifferAccuseNobody) {
  int wrong = 0, runs = 0;
  for (const int nodes : {5, 6})
    for (const double cv : {0.25, 0.4})
      for (int seed = 1; seed <= seeds(15, 100); ++seed, ++runs) {
        Spec spec = network(nodes);
        spec.metrics = simulate::pick_metrics({"p2p/latency*"});
        spec.link_cv = cv;
        spec.seed = static_cast<std::uint64_t>(seed);
        wrong += accused(whole_run(spec)).empty() ? 0 : 1;
      }
  EXPECT_LE(wrong, runs / 20);
}

TEST(VerdictNetwork, ASlowNicBesideABadPairIsNamedAndNoHealthyNode) {
  for (const int nodes : {4, 5, 6, 7, 8, 12, 24})
    for (const double percent : {40.0, 93.0, 99.9})
      for (int seed = 1; seed <= seeds(2, 50); ++seed) {
        std::vector<std::string> faults = slow_pair(0, 1, 95);
        faults.push_back(slow_nic(3, percent));
        Spec spec = few(nodes, faults);
        spec.seed = static_cast<std::uint64_t>(seed);
        auto r = screened(spec);
        const auto v = retested(r, spec);
        const std::string what = std::to_string(nodes) + " nodes, " + std::to_string(percent) + " %";
        EXPECT_THAT(accused(v), testing::Contains("node sim03")) << what;
        for (int node = 0; node < nodes; ++node) {
          if (node == 0 || node == 1 || node == 3) continue;
          EXPECT_EQ(state_of(r, v, simulate::Machine(spec).node_name(node)), "PASS") << what << ", " << node;
        }
      }
}

/// The verdict after a retest in which one of the control pairs, of nodes 0 and 1, was at a twentieth.
results::VerdictData beside_a_disturbed_pair(const Spec& spec) {
  auto r = screened(spec);
  retested(r, spec);
  const simulate::Machine machine(spec);
  const std::set disturbed = {machine.device_row(0), machine.device_row(1)};
  for (auto& c : r.cases)
    for (std::size_t row = 0; row < c.entities(); ++row)
      if (c.name.ends_with(".c1") && std::set{c.source[row], c.destination[row]} == disturbed)
        for (auto& m : c.metrics)
          for (std::size_t i = 0; m.name == "bandwidth" && i < c.samples(); ++i)
            m.values[row * c.samples() + i] *= 0.05;
  return judge(r);
}

TEST(VerdictNetwork, OneDisturbedPairOfControlsDoesNotHideAGrosslySlowNic) {
  for (const auto& [nodes, state] : {std::pair(6, "FAIL"), std::pair(5, "WARN"), std::pair(4, "WARN")}) {
    const auto v = beside_a_disturbed_pair(few(nodes, {slow_nic(3, 93)}));
    EXPECT_EQ(v.state, state) << nodes << " nodes";
    EXPECT_THAT(accused(v), testing::Contains("node sim03")) << nodes << " nodes";
  }
  EXPECT_NE(beside_a_disturbed_pair(few(6, {slow_nic(3, 15)})).state, "FAIL");
}

}  // namespace
}  // namespace assay
