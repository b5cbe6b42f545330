// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cstdlib>

#include "network_model.hpp"
#include "verdict/network.hpp"

namespace assay {
namespace {

using namespace fabricate;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Screens, measures again what is asked for until nothing is, judges.
results::VerdictData whole_run(NetworkRun& run, bool retested = true) {
  for (int stage = 0; retested && stage < 4; ++stage) {
    const auto options = verdict::options_from(run.results());
    verdict::Judgement j(run.results(), options);
    verdict::collect_series(j);
    const auto wanted = verdict::network_retests(j);
    if (wanted.empty()) break;
    for (const auto& retest : wanted) run.measure(retest);
  }
  return judge(run.results());
}

/// Names of findings of WARN and above, with their levels.
std::vector<std::string> accused(const results::VerdictData& v) {
  std::vector<std::string> names;
  for (const auto& f : v.findings)
    if (f.severity != "INFO") names.push_back(f.level + " " + f.name);
  return names;
}

const results::Finding& worst(const results::VerdictData& v) { return v.findings.front(); }

constexpr auto case_name = "bandwidth-uni-4194304-cross-mpi";

NetworkRun large(Network n) {
  NetworkRun run(n);
  run.measure(case_name, run.rounds(8, 4));
  return run;
}

int seeds(int normally, int nightly) { return std::getenv("ASSAY_NIGHTLY") != nullptr ? nightly : normally; }

/// How many of `count` runs accuse exactly `expected` (empty: nobody).
int exact(Network n, int count, const std::vector<std::string>& expected) {
  int right = 0;
  for (int seed = 1; seed <= count; ++seed) {
    n.seed = static_cast<std::uint64_t>(seed);
    auto run = large(n);
    const auto v = whole_run(run);
    const auto names = accused(v);
    right += names == expected ? 1 : 0;
    if (names == expected) continue;
    std::cout << "seed " << seed << ": " << names.size() << " accused\n";
    for (std::size_t i = 0; i < std::min<std::size_t>(4, v.findings.size()); ++i)
      std::cout << "  " << v.findings[i].text << "\n";
  }
  return right;
}

Network thousand() {
  Network n;
  n.nodes = 1024;
  n.leaves = 32;
  return n;
}

TEST(VerdictNetwork, SlowNicOfAThousandNodesIsNamedExactly) {
  auto n = thousand();
  n.slow_out[333] = n.slow_in[333] = 0.05;
  const int count = seeds(5, 100);
  EXPECT_GE(exact(n, count, {"node node333"}), count * 99 / 100);
}

TEST(VerdictNetwork, SlowLeafOfAThousandNodesIsNamedExactly) {
  auto n = thousand();
  n.leaf_slow[7] = 0.02;
  const int count = seeds(5, 100);
  EXPECT_GE(exact(n, count, {"switch switch:L7"}), count * 99 / 100);
}

TEST(VerdictNetwork, NicSlowByThreePercentIsMostlyNamed) {
  auto n = thousand();
  n.slow_out[500] = n.slow_in[500] = 0.03;
  const int count = seeds(6, 100);
  EXPECT_GE(exact(n, count, {"node node500"}),
            std::getenv("ASSAY_NIGHTLY") != nullptr ? count * 85 / 100 : 4);
}

TEST(VerdictNetwork, HealthyNetworkAccusesNobody) {
  const int count = seeds(5, 100);
  EXPECT_EQ(exact(thousand(), count, {}), count);
}

TEST(VerdictNetwork, SlowNicIsConfirmedAndFails) {
  auto n = thousand();
  n.nodes = 256;
  n.leaves = 8;
  n.slow_out[33] = n.slow_in[33] = 0.2;
  auto run = large(n);
  auto v = whole_run(run, false);
  ASSERT_EQ(accused(v), std::vector<std::string>{"node node33"});
  EXPECT_EQ(worst(v).severity, "WARN") << "no FAIL without fresh data";
  EXPECT_FALSE(worst(v).confirmed);
  v = whole_run(run);
  ASSERT_EQ(accused(v), std::vector<std::string>{"node node33"});
  EXPECT_EQ(worst(v).severity, "FAIL");
  EXPECT_TRUE(worst(v).confirmed);
  EXPECT_EQ(worst(v).action, "TRIAGE");
  EXPECT_EQ(worst(v).part, "node33/mlx5_0");
  EXPECT_NEAR(*worst(v).deficit, 0.2, 0.02);
  EXPECT_GT(*worst(v).ci_low, 0.15);
  EXPECT_LT(*worst(v).ci_high, 0.25);
  EXPECT_EQ(state_of(run.results(), v, "node33"), "FAIL");
  EXPECT_EQ(state_of(run.results(), v, "node34"), "PASS");
}

TEST(VerdictNetwork, SenderAndReceiverAreToldApart) {
  for (const bool sends : {true, false}) {
    auto n = thousand();
    n.nodes = 128;
    n.leaves = 0;
    (sends ? n.slow_out : n.slow_in)[77] = 0.1;
    auto run = large(n);
    const auto v = whole_run(run);
    ASSERT_EQ(accused(v), std::vector<std::string>{"node node77"});
    EXPECT_THAT(worst(v).text, HasSubstr(sends ? "all it sends" : "all it receives"));
    EXPECT_NEAR(*worst(v).deficit, 0.1, 0.02);
  }
}

TEST(VerdictNetwork, OneNicOfFourIsNamedAndItsSiblingsAreNot) {
  Network n;
  n.nodes = 32;
  n.nics = 4;
  n.slow_out[4 * 9 + 2] = n.slow_in[4 * 9 + 2] = 0.1;
  auto run = large(n);
  EXPECT_EQ(accused(whole_run(run)), std::vector<std::string>{"nic node9/mlx5_2"});
  for (int k = 0; k < 4; ++k) n.slow_out[4 * 9 + k] = n.slow_in[4 * 9 + k] = 0.1;
  auto all = large(n);
  EXPECT_EQ(accused(whole_run(all)), std::vector<std::string>{"node node9"});
}

TEST(VerdictNetwork, OneBadPairIsNamedAmongSpikes) {
  auto n = thousand();
  NetworkRun look(n);
  const auto pair = look.rounds(8, 4)[3][20];
  n.pairs[std::minmax(pair.first, pair.second)] = 0.2;
  auto run = large(n);
  const auto v = whole_run(run);
  const auto names = accused(v);
  ASSERT_EQ(names.size(), 1U);
  EXPECT_THAT(names[0], HasSubstr("link node"));
  EXPECT_THAT(names[0], HasSubstr("node" + std::to_string(pair.first) + "/"));
  EXPECT_THAT(names[0], HasSubstr("node" + std::to_string(pair.second) + "/"));
  EXPECT_EQ(worst(v).severity, "FAIL");
}

TEST(VerdictNetwork, WithoutTopologyNoLeafIsNamed) {
  auto n = thousand();
  n.nodes = 256;
  n.leaves = 8;
  n.leaf_slow[3] = 0.1;
  NetworkRun run(n);
  run.measure(case_name, run.rounds(12, 0));
  run.results().inventory["nic"].text.clear();
  const auto v = whole_run(run);
  ASSERT_EQ(worst(v).kind, "split") << "32 slow nodes are one finding: " << worst(v).text;
  EXPECT_EQ(worst(v).level, "cluster");
  EXPECT_EQ(accused(v).size(), 1U);
  EXPECT_GE(worst(v).members.size(), 30U);
}

/// Few nodes: every two met.
NetworkRun few(Network n) {
  n.noise = 0.03;
  n.spikes = 0;
  NetworkRun run(n);
  run.measure(case_name, run.tournament());
  return run;
}

TEST(VerdictNetwork, HubOfFourNodesIsNamedAndItsPartnersAreNot) {
  Network n;
  n.nodes = 4;
  n.slow_out[2] = n.slow_in[2] = 0.5;
  auto run = few(n);
  auto v = whole_run(run, false);
  ASSERT_EQ(accused(v), std::vector<std::string>{"node node2"});
  EXPECT_EQ(worst(v).severity, "WARN");
  EXPECT_EQ(state_of(run.results(), v, "node2"), "WARN");
  EXPECT_EQ(state_of(run.results(), v, "node0"), "PASS");
  v = whole_run(run);
  ASSERT_EQ(accused(v), std::vector<std::string>{"node node2"});
  EXPECT_EQ(worst(v).severity, "FAIL");
  EXPECT_EQ(state_of(run.results(), v, "node0"), "PASS");
}

TEST(VerdictNetwork, ThreeNodesAreEnoughForAHubAndTwoAreNot) {
  Network n;
  n.nodes = 3;
  n.slow_out[1] = n.slow_in[1] = 0.5;
  auto run = few(n);
  EXPECT_EQ(accused(whole_run(run, false)), std::vector<std::string>{"node node1"});
  n.nodes = 2;
  auto two = few(n);
  EXPECT_TRUE(accused(whole_run(two, false)).empty());
}

TEST(VerdictNetwork, TwoSlowNicsOfSixAreNamed) {
  for (int seed = 1; seed <= seeds(3, 100); ++seed) {
    Network n;
    n.nodes = 6;
    n.seed = static_cast<std::uint64_t>(seed);
    n.slow_out[1] = n.slow_in[1] = n.slow_out[4] = n.slow_in[4] =
        0.98;                // most links of the network touch one of them
    n.pairs[{0, 2}] = 0.35;  // beyond what counts as slow, far from the other two
    auto run = few(n);
    const auto v = whole_run(run);
    const auto names = accused(v);
    EXPECT_THAT(names, testing::IsSupersetOf({"node node1", "node node4"})) << seed;
    for (const char* healthy : {"node3", "node5"})
      EXPECT_EQ(state_of(run.results(), v, healthy), "PASS") << seed;
  }
}

TEST(VerdictNetwork, OneSlowPairOfFourNodesIsALink) {
  Network n;
  n.nodes = 4;
  n.pairs[{1, 3}] = 0.5;
  auto run = few(n);
  const auto names = accused(whole_run(run));
  ASSERT_EQ(names.size(), 1U);
  EXPECT_THAT(names[0],
              testing::AnyOf("link node1/cores0-1>node3/cores0-1", "link node3/cores0-1>node1/cores0-1"));
}

TEST(VerdictNetwork, SmallHealthyClustersAccuseNobody) {
  int wrong = 0, runs = 0;
  for (const int nodes : {2, 3, 4, 6, 8, 16, 24, 40})
    for (int seed = 1; seed <= seeds(20, 200); ++seed, ++runs) {
      Network n;
      n.nodes = nodes;
      n.seed = static_cast<std::uint64_t>(seed);
      auto run = few(n);
      const auto v = whole_run(run);
      wrong += accused(v).empty() ? 0 : 1;
      EXPECT_NE(v.state, "FAIL") << nodes << " nodes, seed " << seed;
    }
  EXPECT_LE(wrong, runs / 100);
}

TEST(VerdictNetwork, RetestsUseSamePartnerThenNewOnes) {
  auto n = thousand();
  n.nodes = 128;
  n.leaves = 8;
  n.slow_out[77] = n.slow_in[77] = 0.1;
  auto run = large(n);
  const auto options = verdict::options_from(run.results());
  verdict::Judgement j(run.results(), options);
  verdict::collect_series(j);
  const auto wanted = verdict::network_retests(j);
  ASSERT_FALSE(wanted.empty());
  const auto& retest = wanted.front();
  EXPECT_EQ(retest.name, case_name);
  EXPECT_EQ(retest.metric, "bandwidth");
  const auto suspect = run.end_row(77);
  EXPECT_THAT(retest.candidates, testing::Contains(suspect));
  EXPECT_GE(retest.controls.size(), 8U);
  std::set<std::int32_t> known;
  const auto& c = run.results().cases.front();
  for (std::size_t i = 0; i < c.entities(); ++i)
    if (c.source[i] == suspect) known.insert(c.destination[i]);
  std::set<std::int32_t> partners;
  for (std::size_t r = 0; r < retest.rounds.size(); ++r) {
    std::set<std::int32_t> busy;
    bool controls = false;
    for (const auto& link : retest.rounds[r]) {
      EXPECT_TRUE(busy.insert(link.source).second && busy.insert(link.destination).second) << "round " << r;
      controls = controls || (link.source != suspect && link.destination != suspect);
      if (link.source != suspect && link.destination != suspect) continue;
      const auto partner = link.source == suspect ? link.destination : link.source;
      EXPECT_EQ(known.contains(partner), r == 0) << "round " << r;
      EXPECT_TRUE(partners.insert(partner).second);
    }
    EXPECT_TRUE(controls) << "round " << r;
  }
  EXPECT_EQ(partners.size(), 9U);
  const auto again = verdict::network_retests(j);
  EXPECT_EQ(again.front().rounds.size(), retest.rounds.size()) << "the same file asks for the same";
  run.measure(retest);
  verdict::Judgement later(run.results(), options);
  verdict::collect_series(later);
  for (const auto& more : verdict::network_retests(later))
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
  Network n;
  n.nodes = 4;
  n.slow_out[2] = n.slow_in[2] = 0.5;
  auto run = few(n);
  const auto v =
      judge(run.results(), "[[limit]]\nmetric = \"p2p/bandwidth-*:bandwidth\"\nmin = \"8 GB/s\"\n");
  EXPECT_EQ(v.state, "FAIL");
  EXPECT_EQ(state_of(run.results(), v, "node2"), "FAIL");
  EXPECT_EQ(state_of(run.results(), v, "node1"), "PASS");
}

/// Most pairs that cross switches cross the bad one, and only those below the same switch compare well with
/// others below theirs.
TEST(VerdictNetwork, BadUplinkOfOneOfThreeSwitchesIsNamed) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Network n;
    n.seed = seed;
    n.nodes = 6;
    n.leaves = 3;
    n.noise = 0.05;
    n.leaf_slow[1] = 0.9;
    NetworkRun run(n);
    run.measure(case_name, run.tournament());
    const auto v = whole_run(run);
    EXPECT_EQ(v.state, "FAIL") << seed;
    EXPECT_THAT(accused(v), ElementsAre("switch switch:L1")) << seed;
    n.leaf_slow.clear();
    NetworkRun healthy(n);
    healthy.measure(case_name, healthy.tournament());
    EXPECT_THAT(accused(whole_run(healthy)), IsEmpty()) << seed;
  }
}

}  // namespace
}  // namespace assay
