// SPDX-License-Identifier: Apache-2.0
// What p2p and allreduce plan, by level, topology and options.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "suites/allreduce/allreduce_plan.hpp"
#include "suites/allreduce/allreduce_suite.hpp"
#include "suites/allreduce/series.hpp"
#include "suites/p2p/p2p_plan.hpp"
#include "suites/p2p/p2p_suite.hpp"
#include "transport/ucx_communicator.hpp"

namespace assay {
namespace {

constexpr std::uint64_t gib = 1ULL << 30;

Topology topology_of(int nodes, int ranks_per_node, int cpus_per_node) {
  Topology topology;
  for (int node = 0; node < nodes; ++node) {
    topology.nodes.emplace_back();
    for (int local = 0; local < ranks_per_node; ++local) {
      RankPlace place;
      place.rank = topology.size();
      place.node = node;
      place.local_rank = local;
      place.local_size = ranks_per_node;
      place.cpus = {local % cpus_per_node};
      topology.ranks.push_back(place);
    }
  }
  return topology;
}

struct Planner {
  explicit Planner(const Suite& s, Level level) : suite(s) {
    config.level = level;
    for (const OptionSpec& spec : suite.options()) config.options.set(spec, {});
  }
  Planner& option(const std::string& name, const std::string& text) {
    for (const OptionSpec& spec : suite.options())
      if (spec.name == name) config.options.set(spec, {text});
    return *this;
  }
  std::vector<Case> plan(const Topology& topology, std::uint64_t memory = gib) const {
    return suite.plan({config, topology, memory, 7});
  }
  const Suite& suite;
  Config config;
};

double required_seconds(const std::vector<Case>& cases) {
  double sum = 0;
  for (const Case& c : cases)
    if (c.required && c.not_applicable.empty()) sum += c.expected_s();
  return sum;
}

const Case& find(const std::vector<Case>& cases, const std::string& name) {
  const auto it = std::find_if(cases.begin(), cases.end(), [&](const Case& c) { return c.name == name; });
  if (it == cases.end()) throw Error(ErrorKind::internal, "no case " + name);
  return *it;
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
    return std::count_if(cases.begin(), cases.end(), [](const Case& c) { return c.parameters.value("transport", "") == "ucx"; });
  };
  EXPECT_EQ(over_ucx(quick), 0);
  EXPECT_EQ(over_ucx(standard) > 0, !UcxCommunicator::version().empty());
  for (const Case& c : standard) EXPECT_FALSE(c.required && c.parameters.value("transport", "") == "ucx") << c.name;
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
}

TEST(CommPlan, RandomGroupsHoldFourNodesEach) {
  const auto stream = allreduce::group_stream(1, "x");
  for (const std::size_t nodes : {8u, 11u, 64u}) {
    const auto first = allreduce::draw_groups(nodes, stream, 0),
               second = allreduce::draw_groups(nodes, stream, 1);
    EXPECT_EQ(first, allreduce::draw_groups(nodes, stream, 0));
    EXPECT_NE(first, second);
    for (const auto& draw : {first, second}) {
      EXPECT_EQ(static_cast<std::size_t>(std::count(draw.begin(), draw.end(), -1)), nodes % 4);
      for (int group = 0; group < static_cast<int>(nodes / 4); ++group)
        EXPECT_EQ(std::count(draw.begin(), draw.end(), group), 4);
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
