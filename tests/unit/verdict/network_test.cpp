// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <set>

#include "tests/unit/verdict/network_rig.hpp"

namespace assay {
namespace {

using namespace network_rig;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

TEST(VerdictNetwork, SlowNicOfAThousandNodesIsNamedExactly) {
  const int count = seeds(5, 100);
  EXPECT_GE(exact(thousand({slow_nic(333, 5)}), count, {"node sim0333"}), count * 99 / 100);
}

TEST(VerdictNetwork, SlowLeafOfAThousandNodesIsNamedExactly) {
  const int count = seeds(5, 100);
  EXPECT_GE(exact(thousand({"slow:leaf=7,percent=2"}), count, {"switch switch:L7"}), count * 99 / 100);
}

TEST(VerdictNetwork, NicSlowByThreePercentIsMostlyNamed) {
  const int count = seeds(6, 100);
  EXPECT_GE(exact(thousand({slow_nic(500, 3)}), count, {"node sim0500"}),
            std::getenv("ASSAY_NIGHTLY") != nullptr ? count * 85 / 100 : 4);
}

TEST(VerdictNetwork, HealthyNetworkAccusesNobody) {
  const int count = seeds(5, 100);
  EXPECT_EQ(exact(thousand(), count, {}), count);
}

/// Nodes of which more partners are too many links have four in a case (suites/p2p).
TEST(VerdictNetwork, FourPartnersNameASlowNic) {
  const int count = seeds(3, 30);
  Spec spec = thousand({slow_nic(333, 10)});
  spec.rounds = 4;
  EXPECT_EQ(exact(spec, count, {"node sim0333"}), count);
  spec.faults.clear();
  EXPECT_EQ(exact(spec, count, {}), count);
}

TEST(VerdictNetwork, SlowNicIsConfirmedAndFails) {
  const auto spec = network(256, 8, {slow_nic(33, 20)});
  auto r = screened(spec);
  auto v = judge(r);
  ASSERT_EQ(accused(v), std::vector<std::string>{"node sim033"});
  EXPECT_EQ(worst(v).severity, "WARN") << "no FAIL without a retest";
  EXPECT_FALSE(worst(v).confirmed);
  v = retested(r, spec);
  ASSERT_EQ(accused(v), std::vector<std::string>{"node sim033"});
  EXPECT_EQ(worst(v).severity, "FAIL");
  EXPECT_EQ(worst(v).confirmed_by, "retest");
  EXPECT_EQ(worst(v).action, "TRIAGE");
  EXPECT_EQ(worst(v).part, "sim033/nic0");
  EXPECT_NEAR(*worst(v).deficit, 0.2, 0.02);
  EXPECT_GT(*worst(v).ci_low, 0.15);
  EXPECT_LT(*worst(v).ci_high, 0.25);
  EXPECT_EQ(state_of(r, v, "sim033"), "FAIL");
  EXPECT_EQ(state_of(r, v, "sim034"), "PASS");
}

TEST(VerdictNetwork, SenderAndReceiverAreToldApart) {
  for (const bool sends : {true, false}) {
    const auto v = whole_run(network(128, 0, {slow_nic(77, 10) + ",direction=" + (sends ? "tx" : "rx")}));
    ASSERT_EQ(accused(v), std::vector<std::string>{"node sim077"});
    EXPECT_THAT(worst(v).text, HasSubstr(sends ? "all it sends" : "all it receives"));
    EXPECT_NEAR(*worst(v).deficit, 0.1, 0.02);
  }
}

TEST(VerdictNetwork, OneNicOfFourIsNamedAndItsSiblingsAreNot) {
  const auto four_nics = [](const char* fault) {
    Spec spec = network(32, 0, {fault});
    spec.devices_per_node = 4;
    return accused(whole_run(spec));
  };
  EXPECT_EQ(four_nics("slow:node=9,nic=2,percent=10"), std::vector<std::string>{"nic sim09/nic2"});
  EXPECT_EQ(four_nics("slow:node=9,nic=0-3,percent=10"), std::vector<std::string>{"node sim09"});
}

TEST(VerdictNetwork, SlowNicFailsWhereAllNodesAreOnOneSwitch) {
  for (const int leaves : {0, 1, 2}) {
    const auto v = whole_run(network(8, leaves, {"slow:node=3,nic=0,percent=15"}));
    EXPECT_EQ(accused(v), std::vector<std::string>{"node sim03"}) << leaves << " leaves";
    EXPECT_EQ(worst(v).severity, "FAIL") << leaves << " leaves: " << worst(v).text;
  }
}

TEST(VerdictNetwork, OneBadPairIsNamedAmongSpikes) {
  const simulate::Machine machine(thousand());
  const auto link = simulate::cross_rounds(machine, machine.spec().metrics[0].name)[3][20];
  const auto from = machine.device_at(link.source), to = machine.device_at(link.destination);
  const auto v = whole_run(thousand(slow_pair(from, to, 20)));
  const auto names = accused(v);
  ASSERT_EQ(names.size(), 1U);
  EXPECT_THAT(names[0], HasSubstr("link sim"));
  EXPECT_THAT(names[0], HasSubstr(machine.node_name(from) + "/"));
  EXPECT_THAT(names[0], HasSubstr(machine.node_name(to) + "/"));
  EXPECT_EQ(worst(v).severity, "FAIL");
}

TEST(VerdictNetwork, WithoutTopologyNoLeafIsNamed) {
  const auto spec = network(256, 8, {"slow:leaf=3,percent=10"});
  auto r = screened(spec);
  r.inventory["nic"].text.clear();
  const auto v = retested(r, spec);
  ASSERT_EQ(worst(v).kind, "split") << "32 slow nodes are one finding: " << worst(v).text;
  EXPECT_EQ(worst(v).level, "cluster");
  EXPECT_EQ(accused(v).size(), 1U);
  EXPECT_GE(worst(v).members.size(), 30U);
}

TEST(VerdictNetwork, NumbersBesideTheRatesOfLinksAreCollectedWhereTheyAreRead) {
  auto r = screened(network(16, 2, {}));
  for (auto& c : r.cases)
    for (auto& m : c.metrics)
      if (m.name == "round") m.per_sample = false, m.values = std::vector<double>(c.entities(), 1.0);
  const auto has_round = [&](const verdict::Options& options, bool every_number) {
    verdict::Judgement j(r, options);
    verdict::collect_series(j, every_number);
    EXPECT_TRUE(std::ranges::any_of(j.series, [](const auto& s) { return s.metric == "bandwidth"; }));
    return std::ranges::any_of(j.series, [](const auto& s) { return s.metric == "round"; });
  };
  verdict::Options limits, require;
  limits.limits_text = "[p2p.round]\nmax = \"1\"\n";
  require.require = {"round"};
  EXPECT_FALSE(has_round({}, false));
  EXPECT_TRUE(has_round({}, true)) << "for an explanation";
  EXPECT_TRUE(has_round(limits, false));
  EXPECT_TRUE(has_round(require, false));
}

TEST(VerdictNetwork, RetestsUseSamePartnerThenNewOnes) {
  const auto spec = network(128, 8, {slow_nic(77, 10)});
  auto r = screened(spec);
  const auto wanted = wanted_of(r);
  ASSERT_FALSE(wanted.empty());
  const auto& retest = wanted.front();
  EXPECT_EQ(retest.name, spec.metrics[0].name);
  EXPECT_EQ(retest.metric, "bandwidth");
  const auto suspect = simulate::Machine(spec).device_row(77);
  EXPECT_THAT(retest.candidates, testing::Contains(suspect));
  EXPECT_GE(retest.controls.size(), 8U);
  std::set<std::int32_t> known;
  const auto& c = r.cases.front();
  for (std::size_t i = 0; i < c.entities(); ++i)
    if (c.source[i] == suspect) known.insert(c.destination[i]);
  std::set<std::int32_t> partners;
  for (std::size_t round = 0; round < retest.rounds.size(); ++round) {
    std::set<std::int32_t> busy;
    bool controls = false;
    for (const auto& link : retest.rounds[round]) {
      EXPECT_TRUE(busy.insert(link.source).second && busy.insert(link.destination).second)
          << "round " << round;
      controls = controls || (link.source != suspect && link.destination != suspect);
      if (link.source != suspect && link.destination != suspect) continue;
      const auto partner = link.source == suspect ? link.destination : link.source;
      EXPECT_EQ(known.contains(partner), round == 0) << "round " << round;
      EXPECT_TRUE(partners.insert(partner).second);
    }
    EXPECT_TRUE(controls) << "round " << round;
  }
  EXPECT_EQ(partners.size(), 9U);
  EXPECT_EQ(wanted_of(r).front().rounds.size(), retest.rounds.size()) << "the same file asks for the same";
  simulate::run_retests(r, spec, verdict::options_from(r));
  for (const auto& more : wanted_of(r))
    EXPECT_THAT(more.candidates, testing::Not(testing::Contains(suspect)));
}

/// One node with four devices, every two measured both ways.
results::Results inside(const std::vector<double>& rates_by_pair, int samples = 6) {
  auto r = cluster(1, 4);
  const auto d = rows_of_kind(r, "device");
  std::vector<std::int32_t> links, from, to;
  std::vector<double> rates;
  std::size_t pair = 0;
  for (std::size_t a = 0; a < 4; ++a)
    for (std::size_t b = a + 1; b < 4; ++b, ++pair)
      for (const bool forth : {true, false}) {
        links.push_back(static_cast<std::int32_t>(r.entities.size()));
        from.push_back(forth ? d[a] : d[b]);
        to.push_back(forth ? d[b] : d[a]);
        const auto name = r.entities[static_cast<std::size_t>(from.back())].name + ">" +
                          r.entities[static_cast<std::size_t>(to.back())].name;
        r.entities.push_back({"link", name, "path", name, 0, -1});
        rates.push_back(rates_by_pair[pair]);
      }
  auto& c = add_case(r, "p2p", "bandwidth-uni-64-node-mpi", "bandwidth", "B/s", results::Better::higher,
                     "link", links, rates, samples);
  c.source = from;
  c.destination = to;
  add_selftest(r, "pair");
  return r;
}

TEST(VerdictNetwork, SlowDeviceInsideANodeIsNamed) {
  auto v = judge(inside({10e9, 3e9, 10e9, 3e9, 10.5e9, 2.8e9}));  // 01 02 03 12 13 23
  EXPECT_EQ(accused(v), std::vector<std::string>{"device node0/cores4-5"});
  v = judge(inside({10e9, 10e9, 10e9, 10e9, 10.5e9, 2.8e9}));
  ASSERT_EQ(accused(v).size(), 1U);
  EXPECT_THAT(accused(v)[0], HasSubstr("link node0/cores"));
  EXPECT_TRUE(accused(judge(inside({10e9, 9e9, 11e9, 8e9, 10.5e9, 9.8e9}))).empty());
  EXPECT_TRUE(accused(judge(inside({10e9, 3e9, 10e9, 10e9, 10.5e9, 10e9}, 2))).empty())
      << "too few samples for a pair";
  EXPECT_EQ(accused(judge(inside({10e9, 3e9, 10e9, 3e9, 10.5e9, 2.8e9}, 2))).size(), 1U)
      << "enough for three pairs";
}

TEST(VerdictNetwork, SharedCoresGiveANoteBeforeRetest) {
  auto r = inside({10e9, 3e9, 10e9, 3e9, 10.5e9, 2.8e9});
  for (auto& e : r.entities)
    if (e.kind == "device") e.name += ".0";
  const auto v = judge(r);
  EXPECT_TRUE(accused(v).empty());
  ASSERT_NE(find_kind(v, "slow"), nullptr);
  // Set apart from all others a second time there is more to it than who had the core.
  auto again = r.cases.front();
  again.name += ".c1";
  r.cases.push_back(again);
  const auto twice = judge(r);
  ASSERT_EQ(accused(twice).size(), 1U);
  EXPECT_EQ(twice.findings[0].name, find_kind(v, "slow")->name);
  EXPECT_EQ(twice.findings[0].severity, "FAIL");
}

TEST(VerdictNetwork, LimitsOnLinksBlameTheHubOnly) {
  const auto r = screened(few(4, {slow_nic(2, 50)}));
  const auto v = judge(r, "[[limit]]\nmetric = \"p2p/bandwidth-*:bandwidth\"\nmin = \"37 GB/s\"\n");
  EXPECT_EQ(v.state, "FAIL");
  EXPECT_EQ(state_of(r, v, "sim02"), "FAIL");
  EXPECT_EQ(state_of(r, v, "sim01"), "PASS");
}

/// Most pairs that cross switches cross the bad one, and only those below the same switch compare well with
/// others below theirs.
TEST(VerdictNetwork, BadUplinkOfOneOfThreeSwitchesIsNamed) {
  int warned = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto verdict_of = [&](const std::vector<std::string>& faults) {
      Spec spec = network(6, 3, faults);
      spec.seed = seed;
      spec.link_cv = 0.05;
      spec.within_cv = 0.01;
      return whole_run(spec);
    };
    const auto slow = verdict_of({"slow:leaf=1,percent=90"});
    EXPECT_THAT(accused(slow), ElementsAre("switch switch:L1")) << seed << all_reasons(slow);
    const auto healthy = verdict_of({});
    EXPECT_NE(healthy.state, "FAIL") << seed;
    warned += accused(healthy).empty() ? 0 : 1;
  }
  EXPECT_LE(warned, 1) << "of 20 healthy networks with congestion";
}

TEST(VerdictNetwork, ASlowSwitchOfFewAccusesNoNode) {
  struct Shape {
    std::int64_t nodes, leaves;
    double percent;
  };
  for (const Shape& shape : {Shape{20, 5, 50}, Shape{24, 3, 10}, Shape{32, 4, 50}, Shape{48, 3, 20}}) {
    const auto v = whole_run(
        network(shape.nodes, shape.leaves, {"slow:leaf=1,percent=" + std::to_string(shape.percent)}));
    const std::string of = std::to_string(shape.nodes) + " nodes, " + std::to_string(shape.leaves);
    EXPECT_EQ(worst(v).level, "switch") << of;
    EXPECT_EQ(worst(v).severity, "FAIL") << of;
    for (const auto& f : v.findings)
      EXPECT_TRUE(f.severity != "FAIL" || f.level == "switch") << of << ": " << f.text;
  }
}

TEST(VerdictNetwork, FewHealthySwitchesAreAlike) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    auto spec = network(48, 4);
    spec.seed = seed;
    EXPECT_EQ(whole_run(spec).state, "PASS") << seed;
  }
}

/// Four NICs a node, each on the switch of its rail: no pair crosses switches.
TEST(VerdictNetwork, ANicOfARailIsMeasuredAgain) {
  Spec spec = network(8, 4, {slow_nic(7, 50)});
  spec.devices_per_node = spec.nics_per_node = 4;
  const auto v = whole_run(spec);
  ASSERT_THAT(accused(v), ElementsAre("nic sim07/nic0")) << all_reasons(v);
  EXPECT_EQ(worst(v).severity, "FAIL");
}

TEST(VerdictNetwork, ASlowNodeOfFewIsNotItsSwitch) {
  for (const double percent : {12.0, 30.0, 95.0})
    for (const std::int64_t leaves : {4, 8, 16}) {
      const auto v = whole_run(network(16, leaves, {slow_nic(5, percent)}));
      EXPECT_THAT(accused(v), ElementsAre("node sim05")) << percent << " " << leaves << all_reasons(v);
    }
  // Two of four below one switch.
  const auto v = whole_run(network(24, 6, {slow_nic(17, 20), slow_nic(19, 99.9)}));
  EXPECT_THAT(accused(v), UnorderedElementsAre("node sim17", "node sim19")) << all_reasons(v);
}

/// Two rails of two switches each: what one of a rail's switches costs both have.
TEST(VerdictNetwork, APathBetweenTwoSwitchesIsNamedAndNoNodeFails) {
  Spec spec = network(24, 4, {"slow:leaf=1,percent=30"});
  spec.devices_per_node = spec.nics_per_node = 2;
  auto r = screened(spec);
  const auto v = retested(r, spec);
  ASSERT_THAT(accused(v), ElementsAre("switch switch:L1 and switch:L3")) << all_reasons(v);
  EXPECT_EQ(state_of(r, v, "sim00"), "PASS");
  EXPECT_EQ(state_of(r, v, "switch:L3"), "FAIL");
}

/// Most pairs of a NIC whose switch has few nodes take that path.
TEST(VerdictNetwork, ASlowPathOfARailAccusesNoNic) {
  for (const double percent : {10.0, 80.0}) {
    Spec spec = network(20, 8, {"slow:leaf=5,percent=" + std::to_string(percent)});
    spec.devices_per_node = spec.nics_per_node = 4;
    spec.metrics = simulate::pick_metrics({"p2p"});
    spec.seed = 243455;
    const auto r = simulate::run(spec);
    EXPECT_THAT(accused(*r.verdict), ElementsAre("switch switch:L1 and switch:L5"))
        << percent << all_reasons(*r.verdict);
  }
}

/// With 12 rounds some nodes have one pair or none that takes it.
TEST(VerdictNetwork, LinksOfAFailedPathAreNotNamedBesideIt) {
  Spec spec = network(96, 2, {"slow:leaf=0,percent=99.9"});
  spec.metrics = simulate::pick_metrics({"p2p"});
  spec.seed = 232460;
  const auto r = simulate::run(spec);
  for (const auto& f : r.verdict->findings)
    EXPECT_TRUE(f.severity == "INFO" || f.name == "switch:L0 and switch:L1") << f.text;
  EXPECT_EQ(r.verdict->state, "FAIL");
}

TEST(VerdictNetwork, ASwitchOfOneNodeIsNotNamedInItsPlace) {
  for (const std::int64_t nics : {1, 8}) {
    Spec spec = nics == 1 ? network(8, 8, {"slow:node=4,nic=0,percent=50"})
                          : network(3, 3, {"slow:node=2,nic=0+1+2+3+4+5+6+7,percent=80"});
    spec.devices_per_node = spec.nics_per_node = nics;
    spec.metrics = simulate::pick_metrics({"p2p"});
    const auto r = simulate::run(spec);
    EXPECT_EQ(r.verdict->state, "FAIL");
    for (const auto& f : r.verdict->findings) EXPECT_NE(f.level, "switch") << f.text;
  }
}

/// Its links miss the floor of their NIC, too: what explains that is known.
TEST(VerdictNetwork, LinksOfAConfirmedPartAreNotMeasuredOnceMore) {
  const auto r = simulate::run(network(128, 0, {slow_nic(33, 20)}));
  ASSERT_EQ(r.verdict->findings.at(0).name, "sim033");
  int retests = 0;
  for (const auto& c : r.cases) {
    if (c.name.find(".c") == std::string::npos) continue;
    const auto touches = [&](std::int32_t row) {
      return r.entities[static_cast<std::size_t>(row)].name.starts_with("sim033");
    };
    const bool measured = std::any_of(c.source.begin(), c.source.end(), touches);
    EXPECT_EQ(measured, retests++ == 0) << c.name;
  }
  EXPECT_GE(retests, 1);
}

/// A NIC that is slow by a little more than its floor allows: some of its links miss the floor by themselves.
TEST(VerdictNetwork, LinksOfAFailedPartAreNotNamedBesideIt) {
  Spec spec = network(24, 0,
                      {slow_nic(4, 95), slow_nic(8, 30), slow_nic(18, 95), slow_nic(19, 99.9),
                       slow_nic(21, 12), slow_nic(23, 20)});
  spec.metrics = simulate::pick_metrics({"p2p"});
  spec.samples = 10;
  spec.seed = 725304;
  const auto r = simulate::run(spec);
  std::set<std::string> named;
  for (const auto& f : r.verdict->findings)
    if (f.severity != "INFO") named.insert(f.name);
  EXPECT_THAT(named, UnorderedElementsAre("sim04", "sim08", "sim18", "sim19", "sim21", "sim23"));
}

}  // namespace
}  // namespace assay
