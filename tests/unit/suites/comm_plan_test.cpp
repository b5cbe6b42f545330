// SPDX-License-Identifier: Apache-2.0
// What p2p and allreduce plan, by level, topology and options.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "comm_planner.hpp"
#include "suites/allreduce/allreduce_plan.hpp"
#include "suites/allreduce/allreduce_suite.hpp"
#include "suites/allreduce/groups.hpp"
#include "suites/allreduce/series.hpp"
#include "suites/p2p/p2p_plan.hpp"
#include "suites/p2p/p2p_suite.hpp"
#include "suites/p2p/star.hpp"
#include "transport/ucx_communicator.hpp"

namespace assay {
namespace {

using namespace comm_plan;

double required_seconds(const std::vector<Case>& cases) {
  double sum = 0;
  for (const Case& c : cases)
    if (c.required && c.not_applicable.empty()) sum += c.expected_s();
  return sum;
}

TEST(CommPlan, SmokeIsShortAtAnyRankCount) {
  const P2pSuite p2p;
  const AllreduceSuite allreduce;
  for (const auto& topology :
       {topology_of(1, 4, 2), topology_of(1, 64, 2), topology_of(1024, 8, 8), topology_of(64, 64, 64)}) {
    const double seconds = required_seconds(Planner(p2p, Level::smoke).plan(topology)) +
                           required_seconds(Planner(allreduce, Level::smoke).plan(topology));
    EXPECT_GT(seconds, 0.5);
    EXPECT_LT(seconds, 6.0) << topology.size() << " ranks on " << topology.nodes.size() << " nodes";
  }
}

TEST(CommPlan, LevelsAskForTheirSizes) {
  const P2pSuite p2p;
  const AllreduceSuite allreduce;
  const Topology topology = topology_of(2, 2, 2);
  const auto smoke = Planner(p2p, Level::smoke).plan(topology);
  EXPECT_TRUE(find(smoke, "latency-8-node-mpi").required);
  EXPECT_TRUE(find(smoke, "bandwidth-uni-1048576-cross-mpi").required);
  const auto quick = Planner(p2p, Level::quick).plan(topology);
  find(quick, "bandwidth-bi-4194304-node-mpi");
  find(quick, "latency-8-cross-mpi-isolated");
  const auto standard = Planner(p2p, Level::standard).plan(topology, 4 * gib);
  find(standard, "bandwidth-uni-67108864-node-mpi-isolated");
  find(standard, "bandwidth-bi-8-node-mpi");
  const auto over_ucx = [](const std::vector<Case>& cases) {
    return std::count_if(cases.begin(), cases.end(),
                         [](const Case& c) { return c.parameters.value("transport", "") == "ucx"; });
  };
  EXPECT_EQ(over_ucx(quick), 0);
  EXPECT_EQ(over_ucx(standard) > 0, !UcxCommunicator::version().empty());
  for (const Case& c : standard)
    EXPECT_FALSE(c.required && c.parameters.value("transport", "") == "ucx") << c.name;
  find(Planner(allreduce, Level::quick).plan(topology), "allreduce-world-16777216-mpi");
  find(Planner(allreduce, Level::extended).plan(topology), "allreduce-leader-268435456-mpi-isolated");
}

TEST(CommPlan, WhatTheTopologyCannotHoldIsNotApplicable) {
  const P2pSuite p2p;
  const AllreduceSuite allreduce;
  for (const Suite* suite : {static_cast<const Suite*>(&p2p), static_cast<const Suite*>(&allreduce)})
    for (const Case& c : Planner(*suite, Level::quick).plan(topology_of(1, 1, 1)))
      EXPECT_EQ(c.not_applicable.empty(), c.name.rfind("selftest", 0) == 0) << c.name;
  const auto one_node = Planner(p2p, Level::quick).plan(topology_of(1, 4, 4));
  EXPECT_TRUE(find(one_node, "latency-8-node-mpi").not_applicable.empty());
  EXPECT_FALSE(find(one_node, "latency-8-cross-mpi").not_applicable.empty());
  const auto one_rank_a_node = Planner(allreduce, Level::quick).plan(topology_of(4, 1, 1));
  EXPECT_FALSE(find(one_rank_a_node, "allreduce-node-8-mpi").not_applicable.empty());
  EXPECT_TRUE(find(one_rank_a_node, "allreduce-leader-8-mpi").not_applicable.empty());
  EXPECT_FALSE(find(one_rank_a_node, "allreduce-groups-8-mpi").not_applicable.empty());
  const auto large = Planner(allreduce, Level::extended).plan(topology_of(10, 2, 2));
  EXPECT_TRUE(find(large, "allreduce-groups-8-mpi").not_applicable.empty());
}

/// `nodes` nodes of two ranks, each with the NICs given as "name kind state [numa]" or "name/netdev kind
/// state".
Topology with_nics(int nodes, const std::vector<std::vector<std::string>>& nics) {
  Topology topology = topology_of(nodes, 2, 2);
  for (auto& place : topology.ranks) place.numa = place.local_rank;
  for (auto& node : topology.nodes)
    for (const auto& words : nics) {
      Nic nic;
      nic.name = words[0].substr(0, words[0].find('/'));
      if (nic.name != words[0]) nic.netdev = words[0].substr(nic.name.size() + 1);
      nic.kind = words[1];
      nic.state = words[2];
      if (words.size() > 3) nic.numa = std::stoi(words[3]);
      nic.virtual_device = nic.name.starts_with("docker");
      node.nics.push_back(nic);
    }
  return topology;
}

TEST(CommPlan, NicsByThemselvesAreThoseThatEveryNodeHas) {
  const std::vector<std::vector<std::string>> usual = {{"docker0", "ethernet", "up"},
                                                       {"eth0", "ethernet", "up", "0"},
                                                       {"ib0", "ethernet", "up"},
                                                       {"lo", "loopback", "up"},
                                                       {"mlx5_0:1/ib0", "infiniband", "up", "1"},
                                                       {"mlx5_1:1", "infiniband", "down"}};
  Topology topology = with_nics(3, usual);
  auto rails = p2p::rails(topology);
  ASSERT_EQ(rails.size(), 2u);
  EXPECT_EQ(rails[0].nic, "eth0");
  EXPECT_EQ(rails[0].transports, "tcp");
  EXPECT_EQ(rails[0].ranks, (std::vector<int>{0, 2, 4}));
  EXPECT_EQ(rails[1].nic, "mlx5_0:1");
  EXPECT_EQ(rails[1].transports, "ib");
  EXPECT_EQ(rails[1].ranks, (std::vector<int>{1, 3, 5})) << "the rank next to it";
  for (const auto& round : p2p::rail_schedule(rails[1], RandomStream(1), 100))
    for (const auto& pair : round) EXPECT_TRUE(pair.a % 2 == 1 && pair.b % 2 == 1);
  topology.nodes[1].nics.edit()[1].state = "down";
  rails = p2p::rails(topology);
  ASSERT_EQ(rails.size(), 1u);
  EXPECT_EQ(rails[0].nic, "mlx5_0:1");
  EXPECT_EQ(rails[0].seconds, (std::vector<int>{0, 2, 4})) << "who is next to it after that";
  const auto loops = p2p::loopback_schedule(rails[0]);
  ASSERT_EQ(loops.size(), 1u);
  EXPECT_EQ(loops[0], (p2p::Round{{0, 1}, {2, 3}, {4, 5}}));
  const Topology bridged = with_nics(2, {{"docker0", "ethernet", "up"}});
  EXPECT_EQ(p2p::rails(bridged).size(), 1u) << "where there is nothing else";
}

TEST(CommPlan, NicsAreMeasuredFromStandardUpOrWhenAsked) {
  if (UcxCommunicator::version().empty()) GTEST_SKIP() << "built without UCX";
  const P2pSuite p2p;
  const Topology topology = with_nics(2, {{"eth0", "ethernet", "up"}, {"mlx5_0:1", "infiniband", "up"}});
  const auto of_nics = [](const std::vector<Case>& cases) {
    return std::count_if(cases.begin(), cases.end(),
                         [](const Case& c) { return c.parameters.contains("nic"); });
  };
  EXPECT_EQ(of_nics(Planner(p2p, Level::quick).plan(topology)), 0);
  const auto standard = Planner(p2p, Level::standard).plan(topology);
  EXPECT_EQ(of_nics(standard), 16);
  EXPECT_EQ(find(standard, "rate-8-cross-ucx-eth0").parameters.at("repetitions"), 64);
  const Case& loop = find(standard, "bandwidth-uni-4194304-loopback-ucx-mlx5_0.1");
  EXPECT_EQ(loop.entity_kind, "nic");
  EXPECT_EQ(loop.entities, 2);
  EXPECT_EQ(p2p::spec_of(loop).name(), loop.name);
  EXPECT_TRUE(find(Planner(p2p, Level::standard).plan(with_nics(1, {{"eth0", "ethernet", "up"}})),
                   "latency-8-loopback-ucx-eth0")
                  .not_applicable.empty())
      << "one node is enough for that";
  EXPECT_FALSE(find(Planner(p2p, Level::standard).plan(topology_of(2, 1, 1)), "rate-8-node-mpi")
                   .not_applicable.empty());
  EXPECT_EQ(of_nics(Planner(p2p, Level::standard).option("p2p.nics", "none").plan(topology)), 0);
  const auto asked = Planner(p2p, Level::smoke).option("p2p.nics", "mlx5_0:1").plan(topology);
  const Case& c = find(asked, "bandwidth-uni-1048576-cross-ucx-mlx5_0.1");
  EXPECT_EQ(c.entities, 2) << "one rank of each node";
  EXPECT_EQ(p2p::spec_of(c).nic, "mlx5_0:1");
  EXPECT_EQ(p2p::spec_of(c).name(), c.name);
  const auto repeated = Planner(p2p, Level::smoke).option("p2p.nics", "mlx5_0:1,mlx5_0:1").plan(topology);
  EXPECT_EQ(of_nics(repeated), of_nics(asked));
  try {
    Planner(p2p, Level::smoke).option("p2p.nics", "eth7").plan(topology);
    FAIL() << "a NIC that nobody has was accepted";
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()).substr(0, 17), "--p2p.nics: 'eth7");
  }
}

TEST(CommPlan, EachPlannedLinkIsOfItsOwnPair) {
  const P2pSuite p2p;
  for (const Topology& topology : {topology_of(65, 2, 2), topology_of(200, 8, 8), topology_of(1, 32, 32),
                                   topology_of(3, 33, 33), topology_of(11, 2, 2)}) {
    Topology placed = topology;
    for (RankPlace& place : placed.ranks) place.numa = 2 * place.local_rank / place.local_size;
    const Planner planner(p2p, Level::quick);
    for (const Case& c : planner.plan(placed)) {
      if (!c.not_applicable.empty() || c.entity_kind != "link" || p2p::is_star(c)) continue;
      const p2p::Spec spec = p2p::spec_of(c);
      const auto timing = p2p::make_timing(spec, p2p::shape_of(c), planner.config, placed);
      const auto schedule =
          p2p::schedule_of(spec, placed, p2p::schedule_stream(7, c.name, spec, placed), timing);
      EXPECT_EQ(c.rounds, schedule.size()) << c.name;
      std::set<std::pair<int, int>> met;
      for (const auto& round : schedule)
        for (const auto& pair : round) met.insert(std::minmax(pair.a, pair.b));
      EXPECT_EQ(c.entities, 2 * static_cast<std::int64_t>(met.size()))
          << c.name << " of " << placed.size() << " ranks";
    }
  }
}

TEST(CommPlan, BatchesBetweenGpusAreLongBesideWhatTheyCostToStart) {
  Topology topology = topology_of(1, 2, 2);
  topology.device_kind = "cuda";
  for (RankPlace& place : topology.ranks) place.gpu = place.rank;
  Gpu gpu;
  gpu.nvlinks_up = 18, gpu.nvlink_rate_bytes_per_s = 26.5625e9, gpu.nvlink_ends.assign(18, "switch");
  topology.nodes[0].gpus = {gpu, gpu};
  const P2pSuite p2p;
  constexpr double fixed_s = 50e-6;
  for (const Case& c : Planner(p2p, Level::standard).plan(topology, 100 * gib)) {
    if (c.operation == "selftest" || !c.not_applicable.empty()) continue;
    const Json& as = c.parameters;
    if (as.at("series") == "isolated" || as.at("bytes") < p2p::judged_bytes || as.at("transport") == "mpi")
      continue;
    // With the place of the GPU in the centre.
    const int messages = p2p::is_star(c) ? as.at("ranks").get<int>() : 1;
    const double bytes = messages * as.at("bytes").get<double>() * as.at("repetitions").get<double>();
    EXPECT_LE(fixed_s, 0.0101 * bytes / 478e9) << c.name;
    EXPECT_LE(bytes, 4.0 * gib) << c.name;
    EXPECT_EQ(c.share, "bound_share of NVLinks up x rate") << c.name;
  }
  p2p::Spec spec{.mode = p2p::Mode::uni, .transport = "nccl", .bytes = 256u << 20};
  const double rate = p2p::link_rate_of(spec, topology);
  EXPECT_EQ(p2p::make_shape(spec, 100 * gib, rate).slots, 9u);
  EXPECT_EQ(p2p::make_shape(spec, gib, rate).slots, 4u) << "as many as the memory holds";
  EXPECT_EQ(p2p::make_shape(spec, 100 * gib, 2 * rate).slots, 16u) << "4 GiB";
  topology.nodes[0].gpus = {Gpu(), Gpu()};
  EXPECT_EQ(p2p::link_rate_of(spec, topology), 0);
}

TEST(CommPlan, MemoryBoundsSlots) {
  p2p::Spec spec;
  spec.mode = p2p::Mode::bi;
  spec.bytes = 64u << 20;
  EXPECT_EQ(p2p::make_shape(spec, gib).slots, 2u) << "512 MiB at most: 4 are not offered";
  EXPECT_EQ(p2p::make_shape(spec, 130u << 20).slots, 1u);
  EXPECT_EQ(p2p::make_shape(spec, 100u << 20).slots, 0u);
  spec.bytes = 8;
  EXPECT_EQ(p2p::make_shape(spec, gib).repetitions, 20u);
  const AllreduceSuite allreduce;
  const auto cases = Planner(allreduce, Level::extended).plan(topology_of(1, 2, 2), 100u << 20);
  EXPECT_FALSE(find(cases, "allreduce-world-67108864-mpi").not_applicable.empty());
  for (const Case& c : cases) EXPECT_LE(c.bytes, 100u << 20) << c.name;
}

TEST(CommPlan, WrongOptionsAreNamed) {
  const P2pSuite p2p;
  const AllreduceSuite allreduce;
  const Topology topology = topology_of(1, 2, 2);
  const auto message = [&](const Planner& planner) {
    try {
      planner.plan(topology);
    } catch (const Error& e) {
      EXPECT_EQ(e.exit_code(), ExitCode::usage);
      return std::string(e.what());
    }
    return std::string("accepted");
  };
  EXPECT_NE(message(Planner(p2p, Level::quick).option("p2p.sizes", "4096,big")).find("big"),
            std::string::npos);
  EXPECT_NE(message(Planner(p2p, Level::quick).option("p2p.sizes", "0")).find("p2p.sizes"),
            std::string::npos);
  EXPECT_NE(message(Planner(p2p, Level::quick).option("p2p.sizes", "64GiB")).find("64 GiB"),
            std::string::npos);
  EXPECT_NE(message(Planner(p2p, Level::quick).option("p2p.rounds", "-1")).find("-1"), std::string::npos);
  EXPECT_NE(message(Planner(allreduce, Level::quick).option("allreduce.sizes", "10")).find("10"),
            std::string::npos);
  EXPECT_NE(message(Planner(allreduce, Level::quick).option("allreduce.sizes", "64GiB")).find("64 GiB"),
            std::string::npos);
  const char* of_64_bits = "4611686018427387904";  // 2^62: ten slots of it are 2^64 bytes and more
  EXPECT_NE(message(Planner(p2p, Level::quick).option("p2p.sizes", of_64_bits)).find("does not fit"),
            std::string::npos);
  EXPECT_NE(
      message(Planner(allreduce, Level::quick).option("allreduce.sizes", of_64_bits)).find("may be used"),
      std::string::npos);
}

TEST(CommPlan, AcrossRailsEverySecondNodeUsesTheOtherNic) {
  if (UcxCommunicator::version().empty()) GTEST_SKIP() << "built without UCX";
  const P2pSuite p2p;
  const Topology topology = with_nics(
      5, {{"mlx5_0:1", "infiniband", "up"}, {"mlx5_1:1", "infiniband", "up"}, {"eth0", "ethernet", "up"}});
  const auto across = [](const std::vector<Case>& cases) {
    std::vector<std::string> names;
    for (const Case& c : cases)
      if (c.parameters.contains("far_nic")) names.push_back(c.name);
    return names;
  };
  EXPECT_TRUE(across(Planner(p2p, Level::standard).plan(topology)).empty()) << "only where asked for";
  const auto cases = Planner(p2p, Level::standard)
                         .option("p2p.cross-rails", "true")
                         .option("p2p.modes", "latency,uni")
                         .plan(topology);
  // eth0 and mlx5_1:1 have no common transport.
  EXPECT_EQ(across(cases), (std::vector<std::string>{"latency-8-cross-ucx-mlx5_0.1-mlx5_1.1",
                                                     "bandwidth-uni-4194304-cross-ucx-mlx5_0.1-mlx5_1.1"}));
  const Case& c = find(cases, "bandwidth-uni-4194304-cross-ucx-mlx5_0.1-mlx5_1.1");
  const p2p::Spec spec = p2p::spec_of(c);
  EXPECT_EQ(spec.name(), c.name);
  EXPECT_EQ(spec.nic_of(0), "mlx5_0:1");
  EXPECT_EQ(spec.nic_of(3), "mlx5_1:1");
  EXPECT_EQ(c.entities, 2 * 3 * 2);  // three nodes each with two others, both ways
  const auto schedule =
      p2p::schedule_of(spec, topology, p2p::schedule_stream(1, c.name, spec, topology), {.rounds = 100});
  std::set<std::pair<int, int>> met;
  for (const auto& round : schedule) {
    std::set<int> busy;
    for (const auto& pair : round) {
      const int a = topology.ranks[static_cast<std::size_t>(pair.a)].node,
                b = topology.ranks[static_cast<std::size_t>(pair.b)].node;
      EXPECT_NE(a % 2, b % 2);
      EXPECT_TRUE(busy.insert(a).second && busy.insert(b).second);
      EXPECT_TRUE(met.insert({pair.a, pair.b}).second) << "a pair meets once";
    }
  }
  EXPECT_EQ(met.size(), 6U);
  EXPECT_EQ(c.rounds, schedule.size());
  std::set<std::string> titles;  // which the summary shows in place of names
  for (const Case& named : cases) EXPECT_TRUE(titles.insert(named.title).second) << named.title;
}

TEST(CommPlan, RandomGroupsHoldFourNodesEach) {
  using allreduce::Division;
  const auto stream = allreduce::group_stream(1, "x");
  for (const int nodes : {8, 11, 64}) {
    const Topology topology = topology_of(nodes, 2, 2);
    const auto first = allreduce::groups_of(Division::groups, topology, stream, 0),
               second = allreduce::groups_of(Division::groups, topology, stream, 1);
    EXPECT_EQ(first, allreduce::groups_of(Division::groups, topology, stream, 0));
    EXPECT_NE(first, second);
    for (const auto& draw : {first, second}) {
      EXPECT_EQ(std::count(draw.begin(), draw.end(), -1), 2 * (nodes % 4));
      for (int group = 0; group < nodes / 4; ++group)
        EXPECT_EQ(std::count(draw.begin(), draw.end(), group), 8);
    }
  }
}

TEST(CommPlan, RailsAreTheSameGroupsByLocalRank) {
  using allreduce::Division;
  const auto stream = allreduce::group_stream(1, "x");
  const Topology topology = topology_of(11, 3, 3);
  EXPECT_EQ(allreduce::rails(topology), 3);
  const auto groups = allreduce::groups_of(Division::groups, topology, stream, 2),
             rails = allreduce::groups_of(Division::rails, topology, stream, 2);
  for (std::size_t r = 0; r < rails.size(); ++r)
    EXPECT_EQ(rails[r], groups[r] < 0 ? -1 : 3 * groups[r] + topology.ranks[r].local_rank);
}

TEST(CommPlan, HalvesKeepNodesOfOneSwitchTogether) {
  using allreduce::Division;
  Topology topology = topology_of(8, 1, 1);
  const auto stream = allreduce::group_stream(1, "x");
  EXPECT_EQ(allreduce::draws_of(Division::halves, Level::quick, topology), 3);
  EXPECT_EQ(allreduce::groups_of(Division::halves, topology, stream, 0), std::vector<int>(8, 0));
  EXPECT_EQ(allreduce::groups_of(Division::halves, topology, stream, 2),
            (std::vector{0, 0, 1, 1, 2, 2, 3, 3}));
  for (std::size_t n = 0; n < 8; ++n) {
    Nic nic;
    nic.leaf = n % 2 == 0 ? "leaf0" : "leaf1";
    topology.nodes[n].nics = {nic};
  }
  EXPECT_EQ(allreduce::groups_of(Division::halves, topology, stream, 1),
            (std::vector{0, 1, 0, 1, 0, 1, 0, 1}));
  for (const int nodes : {2, 3, 9, 13, 100}) {
    const Topology odd = topology_of(nodes, 1, 1);
    const int draws = allreduce::draws_of(Division::halves, Level::quick, odd);
    for (int d = 0; d < draws; ++d) {
      const auto part = allreduce::groups_of(Division::halves, odd, stream, d);
      for (int k = 0; k < 1 << d; ++k)
        EXPECT_GE(std::count(part.begin(), part.end(), k), nodes == 1 ? 1 : 2) << nodes << " " << d;
    }
  }
}

TEST(CommPlan, RepetitionsFitTheTime) {
  EXPECT_EQ(allreduce::affordable_repetitions(1e-6, 1), 20u);
  EXPECT_EQ(allreduce::affordable_repetitions(0.015, 1), 10u);
  EXPECT_EQ(allreduce::affordable_repetitions(0.03, 1), 5u);
  EXPECT_EQ(allreduce::affordable_repetitions(5, 1), 1u);
}

}  // namespace
}  // namespace assay
