// SPDX-License-Identifier: Apache-2.0
#include "suites/congestion/congestion_suite.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <set>
#include <thread>

#include "suite_rig.hpp"
#include "suites/congestion/canaries.hpp"
#include "suites/congestion/congestion_plan.hpp"
#include "transport/mpi_detail.hpp"

namespace assay {
namespace {

using results::CaseState;

Topology nodes_of(int nodes, int ranks_per_node) {
  Topology topology;
  topology.nodes.resize(static_cast<std::size_t>(nodes));
  for (int rank = 0; rank < nodes * ranks_per_node; ++rank) {
    RankPlace place;
    place.rank = rank;
    place.node = rank / ranks_per_node;
    place.local_rank = rank % ranks_per_node;
    place.local_size = ranks_per_node;
    topology.ranks.push_back(place);
  }
  return topology;
}

TEST(CongestionRoles, AFifthOfTheNodesAreCanariesInPairs) {
  const auto random = congestion::role_stream(1, "x");
  for (const auto& [nodes, canaries] :
       {std::pair(4, 2), std::pair(9, 2), std::pair(20, 4), std::pair(33, 6), std::pair(100, 20)}) {
    const Topology topology = nodes_of(nodes, 2);
    std::set<std::vector<bool>> different;
    for (int draw = 0; draw < 4; ++draw) {
      const auto roles = congestion::draw_roles(topology, random, draw);
      different.insert(roles.canary);
      EXPECT_EQ(std::count(roles.canary.begin(), roles.canary.end(), true), canaries);
      EXPECT_EQ(roles.pairs.size(), static_cast<std::size_t>(canaries));  // two ranks on each node
      for (const auto& pair : roles.pairs) {
        const auto &a = topology.ranks[static_cast<std::size_t>(pair.a)],
                   &b = topology.ranks[static_cast<std::size_t>(pair.b)];
        EXPECT_NE(a.node, b.node);
        EXPECT_EQ(a.local_rank, b.local_rank);
        EXPECT_TRUE(roles.canary[static_cast<std::size_t>(a.node)] &&
                    roles.canary[static_cast<std::size_t>(b.node)]);
      }
    }
    EXPECT_GT(different.size(), 1U);
  }
}

TEST(CongestionImpact, IsARatioOfTimes) {
  std::vector<double> alone(200, 1e-6), congested(200, 2e-6);
  congested.back() = congested.front() = congested[7] = 8e-6;
  const auto impact = congestion::impact_of(alone, congested);
  EXPECT_NEAR(impact.mean, (197 * 2 + 3 * 8) / 200.0, 1e-9);
  EXPECT_NEAR(impact.p99, 8, 0.1);
}

TEST(CongestionCanary, ALateStartIsNoPartOfASum) {
  const auto comm = mpi::duplicate_world();
  if (comm->rank() == comm->size() - 1) std::this_thread::sleep_for(std::chrono::milliseconds(200));
  auto samples = congestion::watch_sum(*comm, 1.0, congestion::most_samples);
  ASSERT_GT(samples.seconds.size(), 2U);
  const auto middle = samples.seconds.begin() + static_cast<std::ptrdiff_t>(samples.seconds.size() / 2);
  std::nth_element(samples.seconds.begin(), middle, samples.seconds.end());
  EXPECT_LT(*middle, 0.1);
}

TEST(CongestionSuite, IsPlannedFromExtendedUpOrByName) {
  CongestionSuite suite;
  SuiteRig quick(suite, 4, Level::quick), extended(suite, 4, Level::extended);
  EXPECT_TRUE(quick.plan().empty());
  EXPECT_EQ(extended.plan().size(), 7U);
  quick.option("suites", "congestion");
  EXPECT_EQ(quick.plan().size(), 7U);
  if (quick.size() >= 4) return;
  for (const Case& c : quick.plan()) EXPECT_EQ(c.not_applicable.empty(), c.name == "selftest-pair");
}

class CongestionCaseTest : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Cases, CongestionCaseTest,
                         testing::Values("latency-8-under-all-to-all-mpi",
                                         "bandwidth-131072-under-incast-mpi", "allreduce-8-under-incast-mpi",
                                         "allreduce-8-under-all-to-all-mpi"));

TEST_P(CongestionCaseTest, CanariesReportBothPartsOfEveryDraw) {
  CongestionSuite suite;
  SuiteRig rig(suite, 4);
  rig.option("suites", "congestion");
  const Case c = rig.planned(GetParam());
  if (!c.not_applicable.empty()) GTEST_SKIP() << c.not_applicable;
  const CaseRecord record = rig.run(c);
  EXPECT_EQ(record.state_, CaseState::pass) << record.reason_;
  EXPECT_EQ(rig.total(static_cast<double>(record.rows_.size())), static_cast<double>(c.entities));
  for (const auto& row : record.rows_) {
    EXPECT_EQ(row.entity, rig.entities().device_of_rank(rig.rank()));
    const auto& congested = row.values.at("congested");
    ASSERT_EQ(congested.size(), row.t.size());
    std::set<std::pair<int, double>> parts;
    for (std::size_t i = 0; i < congested.size(); ++i) parts.insert({row.block[i], congested[i]});
    for (const auto& [draw, part] : parts)
      EXPECT_TRUE(parts.contains({draw, 1 - part})) << "alone and congested in each of its draws";
    EXPECT_FALSE(parts.empty());
    // The impacts are those of the samples, as times.
    std::vector<double> times[2];
    for (const char* metric : {"latency", "bandwidth", "duration"}) {
      const auto found = row.values.find(metric);
      if (found == row.values.end()) continue;
      ASSERT_EQ(found->second.size(), congested.size());
      for (std::size_t i = 0; i < congested.size(); ++i)
        times[congested[i] > 0 ? 1 : 0].push_back(std::string(metric) == "bandwidth" ? 1 / found->second[i]
                                                                                     : found->second[i]);
    }
    ASSERT_FALSE(times[0].empty());
    ASSERT_EQ(times[0].size() + times[1].size(), row.t.size());
    const auto impact = congestion::impact_of(times[0], times[1]);
    EXPECT_NEAR(row.values.at("impact_mean").at(0) / impact.mean, 1, 1e-9);
    EXPECT_NEAR(row.values.at("impact_p99").at(0) / impact.p99, 1, 1e-9);
  }
}

TEST(CongestionSuite, AFlippedBitInACanarysMessageFailsTheCase) {
  CongestionSuite suite;
  SuiteRig rig(suite, 4);
  rig.option("suites", "congestion");
  const Case c = rig.planned("bandwidth-131072-under-all-to-all-mpi");
  if (!c.not_applicable.empty()) GTEST_SKIP() << c.not_applicable;
  rig.corruption() = {rig.rank(), payload_tag, congestion::bandwidth_bytes, 5, 4099};
  const CaseRecord record = rig.run(c);
  EXPECT_EQ(record.state_, rig.corruption().hits > 0 ? CaseState::fail : CaseState::pass);
  EXPECT_GT(rig.total(rig.corruption().hits), 0) << "some canary got one";
}

}  // namespace
}  // namespace assay
