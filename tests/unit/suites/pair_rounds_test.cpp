// SPDX-License-Identifier: Apache-2.0
// How many pairs of nodes meet in the cases of p2p, and with how many samples.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "comm_planner.hpp"
#include "suites/p2p/p2p_plan.hpp"
#include "suites/p2p/p2p_suite.hpp"

namespace assay {
namespace {

using namespace comm_plan;

TEST(PairRounds, PairsMeetAsOftenAsAskedWhileTheLinksAreUnderAMillion) {
  const P2pSuite p2p;
  const auto entities = [&](int nodes, const std::string& rounds) {
    const auto cases = Planner(p2p, Level::standard)
                           .option("p2p.rounds", rounds)
                           .option("p2p.sizes", "1MiB")
                           .option("p2p.modes", "uni")
                           .plan(topology_of(nodes, 8, 8));
    return find(cases, "bandwidth-uni-1048576-cross-mpi").entities;
  };
  EXPECT_EQ(entities(72, "71"), 72 * 8 * 71);
  EXPECT_EQ(entities(72, "1000"), 72 * 8 * 71) << "no two nodes meet twice";
  EXPECT_EQ(entities(72, "5"), 72 * 8 * 5);
  const auto large = entities(2000, "2000");
  EXPECT_GT(large, 900'000);
  EXPECT_LE(large, 1'000'000);
}

TEST(PairRounds, FromStandardUpOneMeasurementMeetsAllPairsOfManyNodes) {
  const P2pSuite p2p;
  const auto links = [&](int nodes, Level level) {
    const Topology topology = topology_of(nodes, 8, 8);
    const Case c = find(Planner(p2p, level).plan(topology), "bandwidth-uni-262144-cross-mpi");
    EXPECT_TRUE(c.required);
    const p2p::Spec spec = p2p::spec_of(c);
    Config config;
    config.level = level;
    const p2p::Timing timing = p2p::make_timing(spec, p2p::shape_of(c), config, topology);
    std::set<std::pair<int, int>> met;
    std::int64_t pairs = 0;
    for (const auto& round :
         p2p::schedule_of(spec, topology, p2p::schedule_stream(7, c.name, spec, topology), timing))
      for (const auto& pair : round) {
        const auto node = [&](int rank) { return topology.ranks[static_cast<std::size_t>(rank)].node; };
        met.insert(std::minmax(node(pair.a), node(pair.b)));
        ++pairs;
      }
    EXPECT_EQ(c.entities, 2 * pairs) << nodes;
    EXPECT_LT(c.expected_s(), 25) << nodes;
    EXPECT_EQ(c.samples, 6U);
    return std::pair(static_cast<std::int64_t>(met.size()), pairs);
  };
  using Links = std::pair<std::int64_t, std::int64_t>;
  EXPECT_EQ(links(65, Level::standard), Links(65 * 64 / 2, 8 * 65 * 64 / 2));
  EXPECT_EQ(links(232, Level::standard), Links(232 * 231 / 2, 232 * 231 / 2)) << "a rank of each node";
  EXPECT_EQ(links(232, Level::extended), Links(232 * 231 / 2, 232 * 231 / 2));
  EXPECT_EQ(links(1000, Level::standard), Links(200 * 500, 200 * 500)) << "as many as rank 0 can take";
  const auto planned = [&](int nodes, Level level) {
    return find(Planner(p2p, level).plan(topology_of(nodes, 8, 8)), "bandwidth-uni-65536-cross-mpi").entities;
  };
  EXPECT_LE(planned(232, Level::quick), 12 * 232 * 8) << "no time for it";
  EXPECT_LE(planned(232, Level::standard), 12 * 232 * 8) << "one measurement is enough";
}

TEST(PairRounds, CasesOfManyNodesShareTwoDrawsOfPartners) {
  const P2pSuite p2p;
  Config config;
  config.level = Level::standard;
  const Topology many = topology_of(80, 2, 2), few = topology_of(16, 2, 2);
  const auto schedule = [&](const Topology& topology, const std::string& name) {
    const Case c = find(Planner(p2p, Level::standard).plan(topology, 4 * gib), name);
    const p2p::Spec spec = p2p::spec_of(c);
    const p2p::Timing timing = p2p::make_timing(spec, p2p::shape_of(c), config, topology);
    return std::pair(
        c.links,
        p2p::schedule_of(spec, topology, p2p::schedule_stream(7, c.name + ".p2", spec, topology), timing));
  };
  const auto large = schedule(many, "bandwidth-uni-4096-cross-mpi"),
             small = schedule(many, "latency-8-cross-mpi");
  EXPECT_EQ(large, schedule(many, "bandwidth-bi-65536-cross-mpi-isolated"));
  EXPECT_EQ(small, schedule(many, "rate-8-cross-mpi"));
  EXPECT_NE(small.first, large.first);
  EXPECT_NE(small.second, large.second);
  EXPECT_EQ(schedule(few, "latency-8-cross-mpi").first, schedule(few, "bandwidth-uni-4096-cross-mpi").first)
      << "all meet";
  EXPECT_NE(schedule(few, "latency-8-cross-mpi").second, schedule(few, "bandwidth-uni-4096-cross-mpi").second)
      << "in an order of their own";
}

/// Of the required cases of links of `standard`, with 8 ranks a node.
struct RequiredLinks {
  std::int64_t links = 0, samples = 0;
  double seconds = 0;  ///< but of the meetings
};

RequiredLinks required_links(const std::vector<Case>& cases, const Topology& topology) {
  RequiredLinks sum;
  for (const Case& c : cases) {
    if (!c.required || c.entity_kind != "link" || !c.not_applicable.empty()) continue;
    sum.links += c.entities;
    sum.samples += c.entities * static_cast<std::int64_t>(c.samples);
    if (p2p::spec_of(c).meetings) continue;
    sum.seconds += c.expected_s();
    EXPECT_GE(c.samples, 20U) << c.name;
    EXPECT_GE(c.entities, 4 * topology.size()) << c.name << ": four partners of each rank";
  }
  return sum;
}

TEST(PairRounds, LinksOfTenThousandNodesAreAsManyAsTheVerdictCanUse) {
  const P2pSuite p2p;
  const auto planned = [&](int nodes, const std::string& links = "") {
    Topology topology = topology_of(nodes, 8, 8);
    topology.index_ranks();
    Planner planner(p2p, Level::standard);
    if (!links.empty()) planner.option("p2p.links", links);
    return std::pair(planner.plan(topology), std::move(topology));
  };
  const auto [cases, topology] = planned(12'500);
  const RequiredLinks most = required_links(cases, topology);
  EXPECT_LE(most.links, 2'500'000);
  EXPECT_LE(most.samples, 50'000'000);
  EXPECT_LE(most.seconds, 18);
  for (const Case& c : cases) {
    if (c.not_applicable.empty() && c.entity_kind == "link" && p2p::spec_of(c).scope == p2p::Scope::cross) {
      EXPECT_LE(c.entities, 400'000) << c.name;
    }
  }
  const auto at_1024 = planned(1024).first;
  EXPECT_EQ(find(at_1024, "latency-8-cross-mpi").entities, 12 * 1024 * 8) << "all are few enough";
  EXPECT_EQ(find(at_1024, "latency-8-cross-mpi").samples, 60U);
  const auto asked = planned(1024, "60000").first;
  EXPECT_EQ(find(asked, "latency-8-cross-mpi").entities, 7 * 1024 * 8);
  EXPECT_EQ(find(asked, "latency-8-node-mpi").entities, 7 * 1024 * 8) << "those inside nodes stay";
  EXPECT_EQ(find(planned(1024, "100").first, "latency-8-cross-mpi").entities, 4 * 1024 * 8);
}

TEST(PairRounds, SingleMessagesAreSentToAsManyNodesAsAPartIsJudgedBy) {
  const P2pSuite p2p;
  const auto planned = [&](int nodes, const char* name, int ranks = 2) {
    return find(Planner(p2p, Level::standard).plan(topology_of(nodes, ranks, ranks), 4 * gib), name);
  };
  const Case few = planned(12, "bandwidth-uni-64-cross-mpi-isolated"),
             many = planned(64, "bandwidth-uni-64-cross-mpi-isolated");
  EXPECT_EQ(few.entities, 12 * 11 * 2);
  EXPECT_EQ(few.samples, 500U);
  EXPECT_EQ(many.entities, 64 * 12 * 2);
  EXPECT_EQ(many.samples, 60U);
  EXPECT_EQ(planned(64, "bandwidth-uni-64-cross-mpi").entities, 64 * 63 * 2);
  EXPECT_EQ(planned(12, "bandwidth-uni-64-node-mpi-isolated", 8).samples, 500U);
  EXPECT_EQ(planned(64, "bandwidth-uni-64-node-mpi-isolated", 8).samples, 60U * 12 / 7) << "with 7 others";
  EXPECT_EQ(planned(64, "bandwidth-uni-64-node-mpi-isolated", 2).samples, 500U) << "with one other";
}

}  // namespace
}  // namespace assay
