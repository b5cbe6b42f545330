// SPDX-License-Identifier: Apache-2.0
// A rank that does not finish a case inside nodes takes the measurements of no other rank with it.
#include "run/unfinished.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "results/resume.hpp"
#include "run/assemble.hpp"

namespace assay {
namespace {

using results::CaseState;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class UnfinishedRanks : public testing::Test {
 protected:
  UnfinishedRanks() : topology(nodes()), entities(topology) {
    c.suite = "memory";
    c.name = "pattern-together";
    c.entity_kind = "device";
    c.stage = Stage::node_local;
    c.required = true;
    for (int rank = 0; rank < 3; ++rank) records.push_back(measured(rank));
  }
  static Topology nodes() {
    Topology t;
    for (int n = 0; n < 3; ++n) {
      Node node;
      node.hostname = node.id = "node" + std::to_string(n);
      t.nodes.push_back(node);
      RankPlace place;
      place.rank = place.node = n;
      place.cpus = {0};
      t.ranks.push_back(place);
    }
    return t;
  }
  /// Ranks send equal declarations once: the first has them.
  CaseRecord measured(int rank) const {
    CaseRecord r;
    if (rank == 0) r.declare({"bandwidth", "B/s", results::Better::higher});
    auto& row = r.add_row(entities.device_of_rank(rank));
    row.t = {1, 2};
    row.block = {0, 1};
    row.values["bandwidth"] = {1e9 + rank, 2e9 + rank};
    return r;
  }
  results::CaseBundle rest() { return assemble(c, records, entities, "x"); }

  Topology topology;
  EntityTable entities;
  Case c;
  std::vector<CaseRecord> records;
};

TEST_F(UnfinishedRanks, LeaveTheCaseToTheOthers) {
  records[0].set_state(CaseState::incomplete, "cut short after 3 of 4 sweeps");
  auto unfinished = take_unfinished(c, records, entities);
  ASSERT_TRUE(unfinished);
  EXPECT_EQ(unfinished->text, "is incomplete on " + entities.name(entities.device_of_rank(0)) +
                                  ": cut short after 3 of 4 sweeps");
  EXPECT_THAT(unfinished->parts, ElementsAre(entities.name(entities.device_of_rank(0))));
  const auto others = rest();
  EXPECT_EQ(others.data.state, CaseState::pass);
  EXPECT_THAT(others.data.entity, ElementsAre(entities.device_of_rank(1), entities.device_of_rank(2)));
  ASSERT_THAT(others.data.metrics, testing::Not(testing::IsEmpty()));
  EXPECT_EQ(others.data.metrics.front().values[0], 1e9 + 1);

  const auto kept = assemble_unfinished(c, std::move(*unfinished), entities, "x");
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->data.name, "pattern-together.u1");
  EXPECT_EQ(kept->data.state, CaseState::incomplete);
  EXPECT_FALSE(kept->data.required);
  EXPECT_THAT(kept->data.entity, ElementsAre(entities.device_of_rank(0)));
  EXPECT_EQ(kept->data.metrics.front().values[1], 2e9);
}

TEST_F(UnfinishedRanks, KeepTheirWrongValues) {
  records[2].miscompare({"", entities.device_of_rank(2), 8, 1, 3});
  records[2].set_state(CaseState::error, "out of memory");
  auto unfinished = take_unfinished(c, records, entities);
  ASSERT_TRUE(unfinished);
  EXPECT_THAT(unfinished->text, HasSubstr("ended in error on "));
  EXPECT_TRUE(rest().errors.empty());
  const auto kept = assemble_unfinished(c, std::move(*unfinished), entities, "x");
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->data.state, CaseState::error);
  ASSERT_THAT(kept->errors, SizeIs(1));
  EXPECT_EQ(kept->errors[0].case_path, "memory/pattern-together.u1");
}

TEST_F(UnfinishedRanks, WithoutRowsLeaveOnlyTheText) {
  records[1] = {};
  records[1].set_state(CaseState::error, "out of memory");
  auto unfinished = take_unfinished(c, records, entities);
  ASSERT_TRUE(unfinished);
  EXPECT_THAT(rest().data.entity, SizeIs(2));
  EXPECT_FALSE(assemble_unfinished(c, std::move(*unfinished), entities, "x"));
}

TEST_F(UnfinishedRanks, HoldUpACaseOfSeveralNodesARetestAndACaseThatNobodyFinished) {
  records[1].set_state(CaseState::error, "lost");
  c.stage = Stage::pairs;
  EXPECT_FALSE(take_unfinished(c, records, entities));
  c.stage = Stage::node_local;
  c.retest = std::make_shared<RetestOrder>();
  EXPECT_FALSE(take_unfinished(c, records, entities));
  c.retest = nullptr;
  for (CaseRecord& r : records) r.set_state(CaseState::error, "lost");
  EXPECT_FALSE(take_unfinished(c, records, entities));
  EXPECT_EQ(rest().data.state, CaseState::error);
}

TEST_F(UnfinishedRanks, MakeAResumedRunMeasureTheCaseAgain) {
  auto bundle = rest();
  EXPECT_TRUE(results::is_final(bundle.data));
  bundle.data.parameters[results::unfinished_parameter] = "is incomplete on node1: late";
  EXPECT_FALSE(results::is_final(bundle.data));
}

}  // namespace
}  // namespace assay
