// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <functional>

#include "results/inventory_names.hpp"
#include "tests/unit/fabricate.hpp"

namespace assay {
namespace {

using namespace fabricate;
using results::Better;
using ::testing::HasSubstr;

results::Results memory_run(int nodes, const std::vector<double>& rates, double hardware) {
  auto r = cluster(nodes);
  add_case(r, "memory", "triad-together", "bandwidth", "B/s", Better::higher, "numa", rows_of_kind(r, "numa"),
           rates);
  add_selftest(r, "memory");
  r.inventory["node"].entity = rows_of_kind(r, "node");
  r.inventory["node"].number[results::inventory::memory_bandwidth] =
      std::vector<double>(static_cast<std::size_t>(nodes), hardware);
  return r;
}

TEST(VerdictPhysical, UniformlyBadClusterIsOneFinding) {
  const auto r = memory_run(5, std::vector<double>(5, 40e9), 100e9);
  const auto v = judge(r);
  EXPECT_EQ(v.state, "FAIL");
  ASSERT_EQ(v.findings.size(), 1U);
  EXPECT_EQ(v.findings[0].level, "cluster");
  EXPECT_EQ(v.findings[0].reference_kind, "physical");
  EXPECT_EQ(v.findings[0].members.size(), 5U);
  EXPECT_EQ(state_of(r, v, "node4"), "FAIL");
}

TEST(VerdictPhysical, SingleDomainBelowIsNamed) {
  const auto v = judge(memory_run(5, {80e9, 80e9, 40e9, 80e9, 80e9}, 100e9));
  ASSERT_EQ(count_severity(v, "FAIL"), 1U);
  EXPECT_EQ(v.findings[0].name, "node2/numa0");
  EXPECT_THAT(v.basis, HasSubstr("hardware rates 5"));
}

TEST(VerdictPhysical, DomainsWithoutCoresTakeNoShareOfTheBandwidth) {
  auto r = memory_run(5, {80e9, 80e9, 40e9, 80e9, 80e9}, 100e9);
  auto& table = r.inventory["numa"];
  table.entity = rows_of_kind(r, "numa");
  for (const auto node : rows_of_kind(r, "node")) {
    table.entity.push_back(static_cast<std::int32_t>(r.entities.size()));
    const std::string name = r.entities[static_cast<std::size_t>(node)].name + "/numa1";
    r.entities.push_back({"numa", name, "path", name, node, -1});
  }
  table.number["pus"].assign(10, 0);
  std::fill_n(table.number["pus"].begin(), 5, 16.0);
  EXPECT_EQ(count_severity(judge(r), "FAIL"), 1U) << "the second domain of each node is a CXL device";
  table.number["pus"][1] = results::not_taken;
  EXPECT_EQ(count_severity(judge(r), "FAIL"), 1U) << "a node that does not tell its cores";
  table.number["pus"].assign(10, 16);
  EXPECT_EQ(count_severity(judge(r), "FAIL"), 0U);
}

TEST(VerdictPhysical, NotClaimedWithoutKnowledgeOrWithIdleCores) {
  EXPECT_EQ(judge(memory_run(5, std::vector<double>(5, 40e9), results::not_taken)).state, "PASS");
  EXPECT_EQ(judge(memory_run(5, std::vector<double>(5, 60e9), 100e9)).state, "PASS");
  auto r = memory_run(5, std::vector<double>(5, 40e9), 100e9);
  r.events.push_back({0, 1, "launch-info", "node0/mlx5_0: counter is at its maximum", "uncovered"});
  EXPECT_EQ(count_severity(judge(r), "FAIL"), 1U) << "no core is idle";
  for (const auto& [row, text] : {std::pair{1, "node0: 2 of 4 counters cannot be read"},
                                  std::pair{-1, "GPUs are not measured: all ranks measure with the CPUs"}})
    r.events.push_back({0, row, "launch-inconclusive", text, "uncovered"});
  EXPECT_EQ(count_severity(judge(r), "FAIL"), 1U) << "nor by this";
  r.events.push_back({0, 1, "launch-warn", "node0: 30 of 32 cores", "uncovered"});
  const auto others = judge(r);
  ASSERT_EQ(count_severity(others, "FAIL"), 1U);
  EXPECT_EQ(others.findings[0].members.size(), 4U) << "of node0 nothing is claimed";
  for (const auto row : rows_of_kind(r, "node"))
    r.events.push_back({0, row, "launch-warn", "node: 30 of 32 cores", "uncovered"});
  EXPECT_EQ(count_severity(judge(r), "FAIL"), 0U);
}

results::Results disk_run(const std::vector<double>& rates, double link) {
  auto r = cluster(static_cast<int>(rates.size()));
  auto& c = add_case(r, "disks", "sequential", "bandwidth", "B/s", Better::higher, "node",
                     rows_of_kind(r, "node"), rates);
  const results::Judging storage{results::MetricClass::storage, 0.1, 1};
  c.metrics[0].judging = storage;
  results::Metric of{"link_rate",
                     "B/s",
                     Better::none,
                     false,
                     results::Role::covariate,
                     false,
                     std::vector<double>(rates.size(), link)};
  of.judging = storage;
  c.metrics.push_back(of);
  add_selftest(r, "disks");
  return r;
}

TEST(VerdictPhysical, DiskBelowAFifthOfItsLinkIsNamed) {
  const auto r = disk_run({3e9, 1.5e9}, 7.9e9);
  const auto v = judge(r);
  ASSERT_EQ(count_severity(v, "FAIL"), 1U);
  EXPECT_EQ(v.findings[0].name, "node1");
  EXPECT_EQ(v.findings[0].reference_kind, "physical");
  EXPECT_THAT(v.basis, HasSubstr("hardware rates 2"));
  EXPECT_EQ(count_severity(judge(disk_run({3e9, 1.7e9}, 7.9e9)), "FAIL"), 0U);
  EXPECT_EQ(count_severity(judge(disk_run({3e9, 1.5e9}, results::not_taken)), "FAIL"), 0U);
  EXPECT_EQ(judge(disk_run(std::vector<double>(4, 1e9), 7.9e9)).findings[0].level, "cluster");
}

TEST(VerdictPhysical, DevicesTogetherAreSummedPerNode) {
  auto r = cluster(1, 2);
  add_case(r, "memory", "triad-together", "bandwidth", "B/s", Better::higher, "device",
           rows_of_kind(r, "device"), {30e9, 30e9});
  add_selftest(r, "memory");
  r.inventory["node"].entity = rows_of_kind(r, "node");
  r.inventory["node"].number[results::inventory::memory_bandwidth] = {100e9};
  EXPECT_EQ(judge(r).state, "PASS");
  r.inventory["node"].number[results::inventory::memory_bandwidth] = {200e9};
  const auto v = judge(r);
  EXPECT_EQ(v.state, "FAIL");
  EXPECT_EQ(v.findings[0].name, "node0");
  // GPUs that no rank has leave the cores to the test, idle cores do not.
  r.events.push_back(
      {0, row_named(r, "node0"), "launch-warn", "node0: no rank can use its 4 GPUs", "uncovered"});
  EXPECT_EQ(judge(r).state, "FAIL");
  r.events.push_back({0, row_named(r, "node0"), "launch-warn", "GPU00: 2 of 4 cores", "uncovered"});
  EXPECT_NE(judge(r).state, "FAIL");
}

results::Results pair_run(double rate, double nic) {
  auto r = cluster(4);
  const auto devices = rows_of_kind(r, "device");
  std::vector<std::int32_t> links;
  for (const auto& [a, b] : {std::pair{0, 1}, std::pair{2, 3}}) {
    links.push_back(static_cast<std::int32_t>(r.entities.size()));
    const auto& from = r.entities[static_cast<std::size_t>(devices[static_cast<std::size_t>(a)])].name;
    const auto& to = r.entities[static_cast<std::size_t>(devices[static_cast<std::size_t>(b)])].name;
    r.entities.push_back({"link", from + ">" + to, "path", from + ">" + to, 0, -1});
  }
  auto& c = add_case(r, "p2p", "bandwidth-uni-4194304-mpi", "bandwidth", "B/s", Better::higher, "link", links,
                     {rate, 12e9});
  c.source = {devices[0], devices[2]};
  c.destination = {devices[1], devices[3]};
  c.parameters["bytes"] = 4194304;
  add_selftest(r, "pair");
  auto& t = r.inventory["nic"];
  t.entity = rows_of_kind(r, "nic");
  t.text["state"] = {"up", "up", "up", "up"};
  t.number[results::inventory::rate] = {nic, nic, nic, nic};
  return r;
}

TEST(VerdictPhysical, NicPairsAgainstTheRate) {
  const auto r = pair_run(6e9, 12.5e9);
  const auto v = judge(r);
  EXPECT_EQ(v.state, "FAIL");
  ASSERT_EQ(count_severity(v, "FAIL"), 1U);
  EXPECT_EQ(v.findings[0].name, "node0/cores0-1>node1/cores0-1");
  EXPECT_EQ(v.findings[0].level, "link");
  EXPECT_EQ(state_of(r, v, "node0"), "FAIL");
  EXPECT_EQ(state_of(r, v, "node2"), "PASS");
  EXPECT_EQ(judge(pair_run(12e9, 12.5e9)).state, "PASS");
  EXPECT_EQ(count_severity(judge(pair_run(6e9, results::not_taken)), "FAIL"), 0U);
}

TEST(VerdictPhysical, OneTcpStreamNeedNotFillAFastNic) {
  auto fast = pair_run(3e9, 12.5e9);
  EXPECT_EQ(count_severity(judge(fast), "FAIL"), 1U);
  fast.inventory["nic"].text["kind"] = std::vector<std::string>(4, "ethernet");
  EXPECT_EQ(count_severity(judge(fast), "FAIL"), 0U);
  auto slow = pair_run(0.7e9, 1.25e9);
  slow.inventory["nic"].text["kind"] = std::vector<std::string>(4, "ethernet");
  EXPECT_EQ(count_severity(judge(slow), "FAIL"), 1U) << "10 Gbit/s are within reach of one stream";
}

TEST(VerdictPhysical, ANicByItselfIsHeldAgainstItsOwnRate) {
  auto r = pair_run(12e9, 12.5e9);
  const auto second = static_cast<std::int32_t>(r.entities.size());
  auto& nics = r.inventory["nic"];
  for (int n = 0; n < 4; ++n) {
    const std::string node = "node" + std::to_string(n);
    r.entities.push_back({"nic", "guid-" + node, "guid", node + "/mlx5_1:1", row_named(r, node), -1});
    nics.entity.push_back(second + n);
    nics.text["state"].emplace_back("up");
    nics.number[results::inventory::rate].push_back(25e9);
  }
  auto& c = r.cases.front();
  ASSERT_EQ(count_severity(judge(r), "FAIL"), 0U) << "of two NICs nobody knows which carried it";
  c.source = {second, second + 2};
  c.destination = {second + 1, second + 3};
  EXPECT_EQ(count_severity(judge(r), "FAIL"), 2U) << "12 GB/s over NICs of 25 GB/s";
}

/// All pairs of six nodes; `rate(a, b)` of each.
results::Results all_pairs(const std::function<double(int, int)>& rate) {
  auto r = cluster(6);
  const auto devices = rows_of_kind(r, "device");
  std::vector<std::int32_t> links, source, destination;
  std::vector<double> rates;
  for (int a = 0; a < 6; ++a) {
    for (int b = a + 1; b < 6; ++b) {
      source.push_back(devices[static_cast<std::size_t>(a)]);
      destination.push_back(devices[static_cast<std::size_t>(b)]);
      links.push_back(static_cast<std::int32_t>(r.entities.size()));
      const std::string name = "node" + std::to_string(a) + ">node" + std::to_string(b);
      r.entities.push_back({"link", name, "path", name, 0, -1});
      rates.push_back(rate(a, b));
    }
  }
  auto& c = add_case(r, "p2p", "bandwidth-uni-4194304-cross-mpi", "bandwidth", "B/s", Better::higher, "link",
                     links, rates);
  c.source = source;
  c.destination = destination;
  c.parameters["bytes"] = 4194304;
  add_selftest(r, "pair");
  auto& t = r.inventory["nic"];
  t.entity = rows_of_kind(r, "nic");
  t.text["state"] = std::vector<std::string>(6, "up");
  t.number[results::inventory::rate] = std::vector<double>(6, 12.5e9);
  return r;
}

TEST(VerdictPhysical, TrafficOnOnePairIsNoFault) {
  const auto v = judge(all_pairs([](int a, int b) { return a == 0 && b == 1 ? 6e9 : 12e9; }));
  EXPECT_EQ(count_severity(v, "FAIL"), 0U);
  const auto slow = all_pairs([](int a, int) { return a == 0 ? 6e9 : 12e9; });
  const auto verdict = judge(slow);
  EXPECT_EQ(verdict.state, "FAIL");
  EXPECT_EQ(state_of(slow, verdict, "node0"), "FAIL");
}

TEST(VerdictNoise, OnePairThatMeetsTrafficDoesNotMakeAMetricNoisy) {
  const auto noisy = [](const std::function<bool(int, int)>& which) {
    auto r = all_pairs([](int, int) { return 12e9; });
    auto& values = r.cases.back().metrics[0].values;
    std::size_t row = 0;
    for (int a = 0; a < 6; ++a)
      for (int b = a + 1; b < 6; ++b, ++row)
        for (std::size_t i = 0; i < 6; ++i)
          if (which(a, b)) values[row * 6 + i] *= i % 2 == 0 ? 0.6 : 1.4;
    return find_kind(judge(r), "noisy") != nullptr;
  };
  EXPECT_FALSE(noisy([](int a, int b) { return a == 0 && b == 1; }));
  EXPECT_TRUE(noisy([](int a, int) { return a == 0; }));
}

TEST(VerdictPeers, SlowDeviceIsAWarningAndNeverAFailure) {
  auto r = healthy(8);
  auto& m = first_case(r).metrics[0];
  for (std::size_t s = 0; s < 6; ++s) m.values[3 * 6 + s] *= 0.5;
  const auto v = judge(r);
  EXPECT_EQ(v.state, "WARN");
  EXPECT_EQ(v.exit_code, 0);
  ASSERT_EQ(v.findings.size(), 1U);
  const auto& f = v.findings[0];
  EXPECT_EQ(f.name, "node3/cores0-1");
  EXPECT_EQ(f.kind, "slow");
  EXPECT_EQ(f.claim, "abnormality");
  EXPECT_EQ(f.reference_kind, "peers");
  EXPECT_FALSE(f.confirmed);
  EXPECT_EQ(f.controls, 7);
  EXPECT_NEAR(f.deficit.value(), 0.5, 0.02);
  EXPECT_EQ(state_of(r, v, "node3"), "WARN");
}

TEST(VerdictPeers, SmallDeficitAndFastOnesAreSilent) {
  auto r = healthy(8);
  auto& m = first_case(r).metrics[0];
  for (std::size_t s = 0; s < 6; ++s) {
    m.values[3 * 6 + s] *= 0.99;
    m.values[4 * 6 + s] *= 1.25;
  }
  EXPECT_TRUE(judge(r).findings.empty());
}

TEST(VerdictPeers, FewEntitiesNeedThirtyPercent) {
  auto r = healthy(2);
  auto& m = first_case(r).metrics[0];
  for (std::size_t s = 0; s < 6; ++s) m.values[s] *= 0.83;
  EXPECT_TRUE(judge(r).findings.empty());
  for (std::size_t s = 0; s < 6; ++s) m.values[s] *= 0.9;
  auto v = judge(r);
  EXPECT_EQ(v.state, "PASS");  // a note
  EXPECT_EQ(count_severity(v, "INFO"), 1U);
  for (std::size_t s = 0; s < 6; ++s) m.values[s] *= 0.8;
  EXPECT_EQ(judge(r).state, "WARN");
  m.values[3] = m.values[9];  // one good sample: something else slowed the others
  EXPECT_EQ(judge(r).state, "PASS");
  first_case(r).count[0] = 2;  // two samples are not enough to accuse
  EXPECT_EQ(judge(r).state, "PASS");
}

TEST(VerdictPeers, SharedCoresAreNotedFromHalfAndNeverAccused) {
  auto r = healthy(2);
  for (auto& e : r.entities) {
    if (e.kind == "device") e.name += ".0";
  }
  auto& m = first_case(r).metrics[0];
  for (std::size_t s = 0; s < 6; ++s) m.values[s] *= 0.6;
  EXPECT_EQ(count_severity(judge(r), "INFO"), 0U);
  for (std::size_t s = 0; s < 6; ++s) m.values[s] *= 0.5;
  EXPECT_EQ(judge(r).state, "PASS");
  EXPECT_EQ(count_severity(judge(r), "INFO"), 1U);
}

TEST(VerdictPeers, OtherModelsAreNoPeers) {
  auto r = healthy(8);
  auto& m = first_case(r).metrics[0];
  for (std::size_t s = 0; s < 24; ++s) m.values[s] *= 0.5;
  auto& t = r.inventory["node"];
  t.entity = rows_of_kind(r, "node");
  t.text["cpu_model"] = {"a", "a", "a", "a", "b", "b", "b", "b"};
  EXPECT_EQ(find_kind(judge(r), "slow"), nullptr);
  EXPECT_THAT(judge(r).basis, HasSubstr("peers only 8, nothing 0"));
  t.text["cpu_model"] = {"a", "a", "a", "a", "a", "a", "a", "b"};
  EXPECT_THAT(judge(r).basis, HasSubstr("peers only 7, nothing 1")) << "one of its model has no peers";
}

TEST(VerdictPeers, LinksInsideNodesAndAcrossAreNoPeers) {
  auto r = cluster(2, 2);
  const auto d = rows_of_kind(r, "device");
  const std::vector<std::int32_t> from = {d[0], d[1], d[0], d[2]}, to = {d[1], d[0], d[2], d[0]};
  std::vector<std::int32_t> links;
  for (std::size_t i = 0; i < from.size(); ++i) {
    links.push_back(static_cast<std::int32_t>(r.entities.size()));
    r.entities.push_back({"link", "l" + std::to_string(i), "path", "link" + std::to_string(i), 0, -1});
  }
  auto& c = add_case(r, "p2p", "bandwidth-uni-64-mpi", "bandwidth", "B/s", Better::higher, "link", links,
                     {10e9, 10e9, 1e9, 1e9});
  c.source = from;
  c.destination = to;
  add_selftest(r, "pair");
  EXPECT_EQ(judge(r).state, "PASS");
}

TEST(VerdictPeers, CollectivesDoNotAccuseRanks) {
  auto r = healthy(8);
  std::vector<double> rates(8, 1e9);
  rates[2] = 1e8;
  add_case(r, "allreduce", "allreduce-world-8-mpi", "busbw", "B/s", Better::higher, "device",
           rows_of_kind(r, "device"), rates);
  add_selftest(r, "allreduce");
  EXPECT_EQ(judge(r).state, "PASS");
}

TEST(VerdictNoise, NoisyRequiredMetricByLevel) {
  auto r = healthy(1);
  first_case(r).metrics[0].values = {60e9, 140e9, 70e9, 130e9, 80e9, 120e9};
  auto v = judge(r);
  EXPECT_EQ(v.state, "PASS");
  ASSERT_NE(find_kind(v, "noisy"), nullptr);
  EXPECT_EQ(find_kind(v, "noisy")->severity, "INFO");
  // Median 100, MAD 30: 4 x 1.2533 x 1.4826 x 30 / sqrt(6) / 100.
  EXPECT_NEAR(find_kind(v, "noisy")->uncertainty.value(), 0.910, 0.001);
  r.info.level = "standard";
  v = judge(r);
  EXPECT_EQ(v.state, "INCONCLUSIVE");
  first_case(r).metrics[0].required = false;
  EXPECT_EQ(find_kind(judge(r), "noisy"), nullptr);
}

TEST(VerdictNoise, APartIsNoisyBesideItsPeersOrAllAre) {
  const auto state = [](double all, double one) {
    auto r = healthy(8);
    r.info.level = "standard";
    auto& values = first_case(r).metrics[0].values;
    const auto samples = values.size() / 8;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double spread = i / samples == 3 ? one : all;
      values[i] =
          100e9 * (1 + spread * (static_cast<double>(i % samples) / static_cast<double>(samples - 1) - 0.5));
    }
    const auto v = judge(r);
    return v.state + (find_kind(v, "noisy") != nullptr ? " noisy" : "");
  };
  EXPECT_EQ(state(0.02, 0.02), "PASS");
  EXPECT_EQ(state(0.05, 0.20), "PASS");  // ten samples are that uncertain
  EXPECT_EQ(state(0.01, 0.40), "INCONCLUSIVE noisy");
  EXPECT_EQ(state(0.40, 0.40), "INCONCLUSIVE noisy");
}

TEST(VerdictSeries, RepeatsAreJoined) {
  auto r = healthy(1);
  auto repeat = first_case(r);
  repeat.name += ".p2";
  r.plan.push_back(r.plan[0]);
  r.plan.back().name = repeat.name;
  r.cases.push_back(repeat);
  const auto v =
      judge(r, "[[limit]]\nmetric = \"gemm/fp32-n2048-together:throughput\"\nmin = \"1 TFLOP/s\"\n");
  ASSERT_EQ(v.findings.size(), 1U);
  EXPECT_EQ(v.findings[0].samples, 12);
}

}  // namespace
}  // namespace assay
