// SPDX-License-Identifier: Apache-2.0
#include "run/retest.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "tests/unit/fabricate.hpp"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Three nodes of two ranks.
Topology cluster() {
  Topology topology;
  for (int n = 0; n < 3; ++n) {
    Node node;
    node.hostname = "node" + std::to_string(n);
    node.id = node.hostname;
    topology.nodes.push_back(node);
    for (int r = 0; r < 2; ++r) {
      RankPlace place;
      place.rank = 2 * n + r;
      place.node = n;
      place.local_rank = r;
      place.local_size = 2;
      place.cpus = {r};
      topology.ranks.push_back(place);
    }
  }
  return topology;
}

class RetestTest : public testing::Test {
 protected:
  RetestTest() : topology(cluster()), entities(topology) {
    add("alone", "device", true, Stage::node_local);
    add("together", "numa", false, Stage::node_local);
    add("pairs", "link", false, Stage::pairs);
    plan.cases[2].entities = 30;  // all pairs of six ranks, both ways: five rounds
    plan.cases[2].seconds = 5;
  }
  void add(const char* name, const char* kind, bool serial, Stage stage) {
    Case c;
    c.suite = "s";
    c.name = name;
    c.entity_kind = kind;
    c.serial = serial;
    c.turns = 2;
    c.stage = stage;
    c.seconds = 1;
    c.required = c.in_every_pass = true;
    c.parameters = {{"n", 7}};
    plan.cases.push_back(c);
  }
  int device(int rank) const { return entities.device_of_rank(rank); }
  RetestOrder order(const std::string& name) const {
    RetestOrder retest;
    retest.path = "s/" + name;
    retest.number = 2;
    retest.devices = {device(1), device(2), device(3)};
    return retest;
  }
  Case made(const RetestOrder& retest) const { return retest_case(plan, retest, topology, entities); }

  Topology topology;
  EntityTable entities;
  Plan plan;
};

TEST_F(RetestTest, AloneTakesTurnsAmongTheChosen) {
  const Case c = made(order("alone"));
  EXPECT_EQ(c.path(), "s/alone.c2");
  EXPECT_EQ(c.base_path(), "s/alone");
  EXPECT_FALSE(c.required);
  EXPECT_EQ(c.parameters, plan.cases[0].parameters) << "or the case_key would be another";
  ASSERT_NE(c.retest, nullptr);
  EXPECT_EQ(c.retest->devices, order("alone").devices);
  EXPECT_EQ(c.turns, 2 * RetestOrder::visits) << "two of them share a node";
  EXPECT_EQ(c.entities, 3);
  EXPECT_GT(c.deadline_s, c.expected_s());
}

TEST_F(RetestTest, TogetherKeepsItsLoad) {
  const Case c = made(order("together"));
  ASSERT_NE(c.retest, nullptr);
  EXPECT_THAT(c.retest->devices, IsEmpty()) << "everybody measures, as at the first time";
  EXPECT_EQ(c.seconds, RetestOrder::visits * plan.cases[1].seconds);
}

TEST_F(RetestTest, ALongCaseIsMeasuredAgainInLessTime) {
  plan.cases[1].seconds = plan.cases[1].min_seconds = 540;
  plan.cases[1].retest_seconds = 60;
  EXPECT_EQ(made(order("together")).seconds, 60);
  plan.cases[1].seconds = 5;
  EXPECT_EQ(made(order("together")).seconds, 15);
}

TEST_F(RetestTest, PairsTakeTheTimeOfTheirRounds) {
  RetestOrder retest = order("pairs");
  retest.rounds = {{{device(0), device(2)}, {device(1), device(3)}}, {{device(0), device(4)}}};
  const Case c = made(retest);
  EXPECT_DOUBLE_EQ(c.seconds, 2.0) << "two rounds of the five that took 5 s";
  EXPECT_EQ(c.entities, 6);
  EXPECT_EQ(c.retest->rounds, retest.rounds);
  plan.cases[2].rounds = 10;
  EXPECT_DOUBLE_EQ(made(retest).seconds, 1.0) << "of one rank of each node: ten rounds have as many links";
}

TEST_F(RetestTest, OrdersTravelAsText) {
  RetestOrder retest = order("pairs");
  retest.rounds = {{{3, 4}, {5, 6}}, {}};
  retest.samples = 120;
  const RetestOrder back = retest_order_from(to_text(retest));
  EXPECT_EQ(back.path, retest.path);
  EXPECT_EQ(back.number, retest.number);
  EXPECT_EQ(back.devices, retest.devices);
  EXPECT_EQ(back.rounds, retest.rounds);
  EXPECT_EQ(back.samples, retest.samples);
  const double whole_s = made(retest).seconds;
  retest.time_share = 0.5;
  EXPECT_EQ(made(retest_order_from(to_text(retest))).seconds, whole_s / 2);
}

TEST_F(RetestTest, WhatIsNotPlannedCannotBeConfirmed) { EXPECT_THROW(made(order("nosuch")), Error); }

TEST_F(RetestTest, FindsTheRankOfARow) {
  EXPECT_EQ(rank_for(device(5), topology, entities), 5);
  EXPECT_EQ(rank_for(entities.node(2), topology, entities), 4) << "the first of the node";
  EXPECT_EQ(rank_for(entities.cluster(), topology, entities), -1);
  EXPECT_EQ(rank_for(-1, topology, entities), -1);
  EXPECT_EQ(rank_for(10'000, topology, entities), -1);
}

/// Two nodes whose products differ: the verdict asks for one retest.
results::Results that_disagree() {
  auto r = fabricate::healthy(2);
  fabricate::first_case(r).arrays.push_back({"digest", {"entity"}, {2}, {5, 6}});
  fabricate::first_case(r).parameters["inputs"] = "0123";
  return r;
}

class AskTest : public RetestTest {
 protected:
  AskTest() {
    add("fp32-n2048-together", "device", false, Stage::node_local);
    plan.cases.back().suite = "gemm";
  }
  /// How many retests fit that much time.
  std::size_t asked(double left_s, const results::Results& results = that_disagree()) {
    cases = planner.ask(results, verdict::options_from(results), plan, topology, entities,
                        [=] { return left_s; });
    return cases.size();
  }
  std::vector<Case> cases;  ///< asked for
  RetestPlanner planner;
};

TEST_F(AskTest, WhatIsMeasuredAgainInTheEndIsNotLeftOut) {
  EXPECT_EQ(asked(0), 0U);
  EXPECT_THAT(planner.left_out(), ElementsAre("gemm/fp32-n2048-together (digest)"));
  EXPECT_EQ(asked(100), 1U);
  EXPECT_THAT(planner.left_out(), IsEmpty());
}

TEST_F(AskTest, WhatDoesNotQuiteFitIsShortened) {
  ASSERT_EQ(asked(100), 1U);
  const double whole_s = cases[0].expected_s();
  for (const double share : {0.9, 0.4}) {
    planner = {};
    ASSERT_EQ(asked(share * whole_s), 1U) << share;
    EXPECT_NEAR(cases[0].expected_s(), share * whole_s, 1e-9);
    EXPECT_THAT(planner.left_out(), IsEmpty());
  }
  planner = {};
  EXPECT_EQ(asked(0.3 * whole_s), 0U);
  EXPECT_THAT(planner.left_out(), testing::SizeIs(1));
}

TEST_F(AskTest, WhatTookLongFitsTheTimeOfItsRetest) {
  Case& burn = plan.cases.back();
  burn.seconds = burn.min_seconds = 540;
  EXPECT_EQ(asked(200), 0U);
  planner = {};
  burn.retest_seconds = 60;
  EXPECT_EQ(asked(200), 1U);
  planner = {};
  EXPECT_EQ(asked(50), 0U) << "it is not shortened below the time of its burn";
}

TEST_F(AskTest, WhatIsNoSuspectAnyMoreIsNotLeftOut) {
  EXPECT_EQ(asked(0), 0U);
  EXPECT_EQ(asked(0, fabricate::healthy(2)), 0U);
  EXPECT_THAT(planner.left_out(), IsEmpty());
}

TEST_F(AskTest, WhatIsLeftOutEachTimeIsToldOnce) {
  for (int round = 0; round <= RetestPlanner::rounds_at_most; ++round) EXPECT_EQ(asked(0), 0U);
  EXPECT_THAT(planner.left_out(), ElementsAre("gemm/fp32-n2048-together (digest)"));
}

TEST(JoinVisits, OneRowPerDevice) {
  CaseRecord record;
  record.declare({"rate", "B/s", results::Better::higher, true, results::Role::metric, true});
  record.declare({"share", "1", results::Better::none, false, results::Role::covariate, false});
  for (int visit = 0; visit < 3; ++visit)
    for (const int entity : {4, 9}) {
      auto& row = record.add_row(entity);
      row.t = {visit + 0.1, visit + 0.2};
      row.block = {0, 0};
      row.values["rate"] = {10.0 * visit + entity, 10.0 * visit + entity + 1};
      row.values["share"] = {0.1 * visit};
      row.integers["digest"] = {7};
    }
  join_visits(record);
  ASSERT_EQ(record.rows_.size(), 2u);
  EXPECT_EQ(record.rows_[1].entity, 9);
  EXPECT_THAT(record.rows_[1].values["rate"], ElementsAre(9, 10, 19, 20, 29, 30));
  EXPECT_THAT(record.rows_[1].block, ElementsAre(0, 0, 1, 1, 2, 2));
  EXPECT_THAT(record.rows_[1].t, ElementsAre(0.1, 0.2, 1.1, 1.2, 2.1, 2.2));
  EXPECT_THAT(record.rows_[1].values["share"], ElementsAre(0.2)) << "a single value is the latest";
  EXPECT_THAT(record.rows_[1].integers["digest"], ElementsAre(7));
}

TEST(CaseName, WithoutItsSuffix) {
  Case c;
  c.suite = "s";
  for (const auto& [name, base] : {std::pair{"a-n4.p2", "s/a-n4"},
                                   {"a.c1", "s/a"},
                                   {"a.cold", "s/a.cold"},
                                   {"v1.5", "s/v1.5"},
                                   {"a.p", "s/a.p"}}) {
    c.name = name;
    EXPECT_EQ(c.base_path(), base);
  }
}

}  // namespace
}  // namespace assay
