// SPDX-License-Identifier: Apache-2.0
#include "suites/allreduce/allreduce_suite.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <map>
#include <set>

#include "suite_rig.hpp"
#include "suites/allreduce/allreduce_plan.hpp"
#include "transport/mpi_detail.hpp"
#include "workload/collective.hpp"

namespace assay {
namespace {

using allreduce::to_string;
using results::CaseState;
using workload::Collective;
using workload::Op;

TEST(AllreduceSuite, OneRankHasOnlyItsSelftest) {
  AllreduceSuite suite;
  SuiteRig rig(suite);
  if (rig.size() > 1) GTEST_SKIP() << "several ranks";
  for (const Case& c : rig.plan())
    EXPECT_EQ(c.not_applicable.empty(), c.name == "selftest-allreduce") << c.name;
}

TEST(AllreduceSuite, EveryRankCatchesItsCorruptedElement) {
  AllreduceSuite suite;
  SuiteRig rig(suite);
  const CaseRecord record = rig.run("selftest-allreduce");
  ASSERT_EQ(record.selftest_.size(), 1u);
  const auto& row = record.selftest_.front();
  EXPECT_EQ(row.checker, "allreduce");
  EXPECT_EQ(row.caught, 1);
  EXPECT_EQ(row.located, 1);
  EXPECT_EQ(row.counted, 1);
  EXPECT_EQ(record.state_, CaseState::pass) << record.reason_;
}

class AllreduceCaseTest : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Cases, AllreduceCaseTest,
                         testing::Values("allreduce-world-8-mpi", "allreduce-world-1048576-mpi",
                                         "allreduce-node-1048576-mpi", "allreduce-leader-1048576-mpi",
                                         "allreduce-groups-65536-mpi", "reduce-scatter-world-65536-mpi",
                                         "all-gather-world-65536-mpi", "all-to-all-world-65536-mpi",
                                         "broadcast-world-65536-mpi", "allreduce-world-8-mpi-in-place",
                                         "allreduce-world-1048576-mpi-in-place"));

TEST_P(AllreduceCaseTest, ReportsRatesOfEveryRankThatTakesPart) {
  const std::string name = GetParam();
  AllreduceSuite suite;
  const bool groups = name.find("groups") != std::string::npos;
  SuiteRig rig(suite, groups ? 8 : 2, Level::standard);
  rig.option("allreduce.sizes", "8,65536,1048576");
  rig.option("allreduce.ops", "allreduce,reduce-scatter,all-gather,all-to-all,broadcast");
  rig.option("allreduce.variants", "plain,in-place");
  const Case c = rig.planned(name);
  if (!c.not_applicable.empty()) GTEST_SKIP() << c.not_applicable;
  const CaseRecord record = rig.run(name);
  EXPECT_EQ(record.state_, CaseState::pass) << record.reason_;
  EXPECT_EQ(rig.total(static_cast<double>(record.rows_.size())), static_cast<double>(c.entities));
  for (const auto& row : record.rows_) {
    EXPECT_EQ(row.entity, rig.entities().device_of_rank(rig.rank()));
    const auto& duration = row.values.at("duration");
    const auto& algbw = row.values.at("algbw");
    const auto& busbw = row.values.at("busbw");
    ASSERT_FALSE(duration.empty());
    ASSERT_EQ(row.t.size(), duration.size());
    ASSERT_EQ(row.block.size(), duration.size());
    const Op op = allreduce::operation_from(c.parameters.at("operation"));
    const double bytes = c.parameters.at("bytes");
    for (std::size_t i = 0; i < duration.size(); ++i) {
      ASSERT_GT(duration[i], 0);
      ASSERT_NEAR(algbw[i] * duration[i], bytes, 4.0 * rig.size());
      if (c.parameters.at("scope") == "world") {
        ASSERT_NEAR(busbw[i] / algbw[i], workload::bus_factor(op, rig.size()), 1e-12);
      }
    }
  }
}

TEST(AllreduceSuite, AFlippedBitFailsTheCaseAndNamesTheElement) {
  AllreduceSuite suite;
  SuiteRig rig(suite);
  if (rig.size() < 2) GTEST_SKIP() << "one rank";
  const int victim = rig.size() - 1;
  // Every operation, byte 2 of element 3: a busy machine has time for a few elements only.
  rig.corruption() = {victim, -1, 0, 0, 14, 1000000};
  const CaseRecord record = rig.run("allreduce-world-1048576-mpi");
  if (rig.rank() != victim) {
    EXPECT_EQ(record.state_, CaseState::pass) << record.reason_;
    return;
  }
  ASSERT_FALSE(record.rows_.empty());
  const std::size_t timed = record.rows_.front().t.size();
  ASSERT_GT(timed, 0u);
  EXPECT_EQ(record.state_, CaseState::fail);
  EXPECT_EQ(record.miscompares(), record.records_.size()) << "one element each";
  EXPECT_GE(record.records_.size(), timed) << "in every timed batch";
  for (const auto& bad : record.records_) {
    EXPECT_EQ(bad.index, 3u);
    EXPECT_EQ(bad.expected ^ bad.actual, 0x10u << 16);
    EXPECT_EQ(bad.reread, bad.actual);
    EXPECT_EQ(bad.entity, rig.entities().device_of_rank(victim));
  }
}

TEST(AllreduceSuite, TheIsolatedSeriesShowsTheLateRank) {
  AllreduceSuite suite;
  SuiteRig rig(suite, 1, Level::quick);
  const Case c = rig.planned("allreduce-world-1048576-mpi-isolated");
  if (!c.not_applicable.empty()) GTEST_SKIP() << c.not_applicable;
  const CaseRecord record = rig.run(c.name);
  ASSERT_EQ(record.rows_.size(), 1u);
  const auto& skew = record.rows_.front().values.at("arrival_skew");
  ASSERT_EQ(skew.size(), record.rows_.front().t.size());
  for (const double s : skew) {
    EXPECT_GE(s, 0);
    EXPECT_EQ(rig.world().min(s), 0);  // somebody is first
  }
}

/// Groups of a record by draw, in order of time.
std::map<int, std::set<int>> groups_by_draw(const CaseRecord& record) {
  std::map<int, std::set<int>> groups;
  for (const auto& row : record.rows_)
    for (const double group : row.values.at("group"))
      groups[static_cast<int>(group / 1e6)].insert(static_cast<int>(group) % 1000000);
  return groups;
}

TEST(AllreduceSuite, HalvesAreMeasuredDownToTwoNodes) {
  AllreduceSuite suite;
  SuiteRig rig(suite, 8, Level::quick);
  if (rig.size() < 8) GTEST_SKIP() << "fewer than 8 ranks";
  Case c = rig.planned("allreduce-world-1048576-mpi");
  RetestOrder retest;
  retest.variant = "halves";
  c.retest = std::make_shared<const RetestOrder>(retest);
  const CaseRecord record = rig.run(c);
  EXPECT_EQ(record.state_, CaseState::pass) << record.reason_;
  const int node = rig.topology().me().node;
  EXPECT_EQ(groups_by_draw(record),
            (std::map<int, std::set<int>>{{0, {0}}, {1, {node / 4}}, {2, {node / 2}}}));
}

TEST(AllreduceRails, EachLocalRankHasGroupsOfItsOwn) {
  AllreduceSuite suite;
  SuiteRig rig(suite, 8, Level::standard);
  if (rig.size() < 16) GTEST_SKIP() << "fewer than 2 ranks on each of 8 nodes";
  const Case c = rig.planned("allreduce-rails-1048576-mpi");
  ASSERT_EQ(c.not_applicable, "");
  EXPECT_EQ(c.parameters.at("rails"), 2);
  EXPECT_EQ(c.parameters.at("ranks"), 4);
  const CaseRecord record = rig.run(c);
  EXPECT_EQ(record.state_, CaseState::pass) << record.reason_;
  const auto groups = groups_by_draw(record);
  EXPECT_EQ(groups.size(), 4U);
  for (const auto& [draw, of] : groups) {
    ASSERT_EQ(of.size(), 1U);
    EXPECT_EQ(*of.begin() % 2, rig.topology().me().local_rank);
    const double together = rig.total(*of.begin() == static_cast<int>(rig.world().max(*of.begin())) ? 1 : 0);
    EXPECT_EQ(together, 4) << "ranks of the last group";
  }
  const auto& row = record.rows_.front();
  EXPECT_NEAR(row.values.at("busbw")[0] / row.values.at("algbw")[0], 1.5, 1e-12);
}

/// The checks of every operation see a wrong element at any place, stale results and a missing contribution.
TEST(Collective, ChecksSeeEveryWrongElement) {
  const auto comm = mpi::duplicate_world();
  for (const Op op : workload::all_operations) {
    const std::size_t bytes = 4096, slot = workload::slot_bytes(op, bytes, comm->size());
    std::vector<double> memory(2 * slot / sizeof(double));
    Collective collective(*comm, op, bytes, std::as_writable_bytes(std::span(memory)), 2, 7);
    collective.prepare(2);
    collective.run(2);
    collective.verify();
    EXPECT_TRUE(collective.wrong().empty()) << to_string(op);
    for (const std::size_t which : {std::size_t{0}, std::size_t{1}}) {
      const auto result = collective.result(which);
      EXPECT_EQ(collective.check(which).count, 0u);
      for (const std::size_t at : {std::size_t{0}, result.size() / 2, result.size() - 1}) {
        const float right = result[at];
        for (const float wrong : {right + 1, -right, std::nanf(""), 0.0f}) {
          result[at] = wrong;
          const auto errors = collective.check(which);
          EXPECT_EQ(errors.count, 1u) << to_string(op);
          EXPECT_EQ(errors.first_index, at) << to_string(op);
        }
        result[at] = right;
      }
    }
    if (op == Op::broadcast && comm->rank() == 0) continue;  // the root's result is its input
    collective.prepare(2);                                   // new inputs, old results
    EXPECT_GT(collective.check(0).count, 0u) << to_string(op);
    collective.verify();
    EXPECT_FALSE(collective.wrong().empty()) << to_string(op);
  }
}

}  // namespace
}  // namespace assay
