// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cstdlib>
#include <set>

#include "simulate/schedule.hpp"
#include "simulate/simulate.hpp"
#include "tests/unit/fabricate.hpp"
#include "verdict/retest/candidates.hpp"

namespace assay {
namespace {

using namespace fabricate;
using simulate::Spec;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Bandwidth of links between nodes with one NIC each. `faults` are written as for `assay simulate --fault`.
Spec network(std::int64_t nodes, std::int64_t leaves = 0, const std::vector<std::string>& faults = {}) {
  Spec spec;
  spec.nodes = nodes;
  spec.leaves = leaves;
  spec.samples = 6;
  spec.metrics = simulate::pick_metrics({"p2p/bandwidth-uni-*"});
  for (const std::string& fault : faults) spec.faults.push_back(simulate::parse_fault(fault));
  return spec;
}

Spec thousand(const std::vector<std::string>& faults = {}) { return network(1024, 32, faults); }

/// Few nodes, of which every two meet, without congestion.
Spec few(std::int64_t nodes, const std::vector<std::string>& faults = {}) {
  Spec spec = network(nodes, 0, faults);
  spec.link_cv = 0.03;
  spec.within_cv = 0.006;
  spec.spike_share = 0;
  return spec;
}

std::string slow_nic(int node, double percent) {
  return "slow:node=" + std::to_string(node) + ",nic=0,percent=" + std::to_string(percent);
}

/// Both directions of a pair of ranks.
std::vector<std::string> slow_pair(std::int64_t a, std::int64_t b, double percent) {
  const auto one = [&](std::int64_t from, std::int64_t to) {
    return "slowlink:pair=" + std::to_string(from) + ">" + std::to_string(to) +
           ",percent=" + std::to_string(percent);
  };
  return {one(a, b), one(b, a)};
}

/// The measurements before any retest. The inventory has no rate of NICs: links are judged against each
/// other. Faults are not marked as injected, so that states are those of a real run.
results::Results screened(const Spec& spec) {
  auto r = simulate::screen(spec);
  r.inventory["nic"].number.clear();
  r.info.injected = false;
  return r;
}

/// Measures again what is asked for until nothing is, judges.
results::VerdictData retested(results::Results& r, const Spec& spec) {
  simulate::run_retests(r, spec, verdict::options_from(r));
  return judge(r);
}

results::VerdictData whole_run(const Spec& spec) {
  auto r = screened(spec);
  return retested(r, spec);
}

/// Names of findings of WARN and above, with their levels.
std::vector<std::string> accused(const results::VerdictData& v) {
  std::vector<std::string> names;
  for (const auto& f : v.findings)
    if (f.severity != "INFO") names.push_back(f.level + " " + f.name);
  return names;
}

const results::Finding& worst(const results::VerdictData& v) { return v.findings.front(); }

int seeds(int normally, int nightly) { return std::getenv("ASSAY_NIGHTLY") != nullptr ? nightly : normally; }

/// How many of `count` runs accuse exactly `expected` (empty: nobody).
int exact(Spec spec, int count, const std::vector<std::string>& expected) {
  int right = 0;
  for (int seed = 1; seed <= count; ++seed) {
    spec.seed = static_cast<std::uint64_t>(seed);
    const auto v = whole_run(spec);
    const auto names = accused(v);
    right += names == expected ? 1 : 0;
    if (names == expected) continue;
    std::cout << "seed " << seed << ": " << names.size() << " accused\n";
    for (std::size_t i = 0; i < std::min<std::size_t>(4, v.findings.size()); ++i)
      std::cout << "  " << v.findings[i].text << "\n";
  }
  return right;
}

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
  EXPECT_TRUE(worst(v).confirmed);
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

TEST(VerdictNetwork, OneSlowPairOfFourNodesIsALink) {
  const auto names = accused(whole_run(few(4, slow_pair(1, 3, 50))));
  ASSERT_EQ(names.size(), 1U);
  EXPECT_THAT(names[0], testing::AnyOf("link sim01/gpu0>sim03/gpu0", "link sim03/gpu0>sim01/gpu0"));
}

TEST(VerdictNetwork, OneSlowPairOnSharedCoresDoesNotFail) {
  const Spec spec = few(5, slow_pair(1, 3, 50));
  auto r = screened(spec);
  ASSERT_EQ(retested(r, spec).state, "FAIL");
  for (auto& c : r.cases) {
    results::Metric share{
        results::core_share, "1", results::Better::higher, false, results::Role::covariate, false, {}};
    share.values.assign(c.entity.size(), 0.5);  // of all ends alike
    c.metrics.push_back(share);
  }
  const auto v = judge(r);
  EXPECT_EQ(v.state, "WARN");
  EXPECT_EQ(worst(v).kind, "shared-core");
  EXPECT_EQ(worst(v).level, "link");
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

std::vector<verdict::Retest> wanted_of(const results::Results& r) {
  const auto options = verdict::options_from(r);
  verdict::Judgement j(r, options);
  verdict::collect_series(j);
  return verdict::network_retests(j);
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
    EXPECT_THAT(accused(verdict_of({"slow:leaf=1,percent=90"})), ElementsAre("switch switch:L1")) << seed;
    const auto healthy = verdict_of({});
    EXPECT_NE(healthy.state, "FAIL") << seed;
    warned += accused(healthy).empty() ? 0 : 1;
  }
  EXPECT_LE(warned, 1) << "of 20 healthy networks with congestion";
}

}  // namespace
}  // namespace assay
