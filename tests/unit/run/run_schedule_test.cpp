// SPDX-License-Identifier: Apache-2.0
#include "run/run_schedule.hpp"
#include "run/runner.hpp"

#include <gtest/gtest.h>

namespace assay {
namespace {

using Action = RunSchedule::Action;

/// Budget of 100 s: optional cases end at 85 s, suspects are measured again until 97 s.
class RunScheduleTest : public testing::Test {
 protected:
  RunScheduleTest() { plan.budget_s = 100; }

  Case& add(const std::string& name, double seconds, bool required, Stage stage = Stage::node_local) {
    Case c;
    c.suite = "s";
    c.name = name;
    c.stage = stage;
    c.required = required;
    c.seconds = seconds;
    c.overhead_seconds = 0;
    plan.cases.push_back(c);
    return plan.cases.back();
  }

  /// "run a" or "skip a: why" for the next case, "end".
  std::string next(RunSchedule& schedule, double elapsed_s = 0) {
    const auto decision = schedule.next(stored, elapsed_s);
    if (decision.action == Action::end) return "end";
    const std::string& name = plan.cases.at(decision.index).name;
    return decision.action == Action::run ? "run " + name : "skip " + name + ": " + decision.reason;
  }

  Plan plan;
  std::set<std::string> stored;
};

TEST_F(RunScheduleTest, TransportsDoNotGiveUpWhileACaseHasTime) {
  plan.budget_s = 1800;
  Case& c = add("a", 2, true);
  c.deadline_s = 10 + 4 * c.expected_s();
  RunSchedule schedule(plan);
  const double seconds = schedule.next(stored, 0).seconds;
  ASSERT_GT(seconds, c.deadline_s) << "a part of what the budget has left";
  EXPECT_GT(give_up_s(c, seconds), seconds);
  EXPECT_EQ(give_up_s(c, 2), c.deadline_s);
}

TEST_F(RunScheduleTest, CasesRunOnceInTheOrderOfThePlan) {
  add("a", 1, true);
  add("b", 1, true).not_applicable = "one rank";
  add("c", 1, false);
  RunSchedule schedule(plan);
  EXPECT_EQ(next(schedule), "run a");
  EXPECT_EQ(next(schedule), "run c");
  EXPECT_EQ(next(schedule), "end");
  EXPECT_EQ(next(schedule), "end");
  RunSchedule none;
  EXPECT_EQ(none.next({}, 0).action, Action::end);
}

TEST_F(RunScheduleTest, OptionalCasesLeaveTimeForRequiredOnes) {
  add("first", 10, true);
  add("fits", 14, false);
  add("late", 16, false);
  add("last", 60, true);
  RunSchedule schedule(plan);
  EXPECT_EQ(next(schedule, 0), "run first");
  EXPECT_EQ(next(schedule, 10), "run fits") << "10 + 14 + 60 of 85";
  EXPECT_EQ(next(schedule, 10), "run last") << "10 + 16 + 60 of 85, but required cases always run";
  EXPECT_EQ(next(schedule, 70), "skip late: budget") << "70 + 16 of 85";
  EXPECT_EQ(next(schedule, 70), "end");
}

TEST_F(RunScheduleTest, OptionalCasesUseTheTimeThatRequiredOnesDidNot) {
  add("early", 20, false);
  add("pairs", 20, false, Stage::pairs);
  add("first", 70, true);
  add("small", 10, false);
  RunSchedule schedule(plan);
  EXPECT_EQ(next(schedule, 0), "run first") << "20 + 70 of 85";
  EXPECT_EQ(next(schedule, 10), "run small");
  EXPECT_EQ(next(schedule, 20), "run early") << "postponed, not skipped";
  RunSchedule after_loss = schedule;
  EXPECT_EQ(next(schedule, 30), "run pairs");
  EXPECT_EQ(next(schedule, 50), "end");
  after_loss.lose_ranks(0, {});
  EXPECT_EQ(next(after_loss, 30), "end") << "without partners";
}

TEST_F(RunScheduleTest, StoredCasesAreNotRepeated) {
  add("stored", 60, true);
  add("optional", 40, false);
  stored = {"s/stored"};
  RunSchedule schedule(plan);
  EXPECT_EQ(next(schedule), "run optional") << "the 60 s of the stored case are free";
  EXPECT_EQ(next(schedule), "end");
}

TEST_F(RunScheduleTest, AfterALossOnlyCasesInsideOfNodesRun) {
  add("local", 1, true);
  add("pairs", 1, true, Stage::pairs);
  add("world", 1, true, Stage::world);
  RunSchedule schedule(plan);
  EXPECT_TRUE(schedule.retest_seconds(0));
  schedule.lose_ranks(0, {});
  EXPECT_EQ(next(schedule), "run local");
  EXPECT_EQ(next(schedule), "end");
  EXPECT_EQ(next(schedule), "end");
  EXPECT_FALSE(schedule.retest_seconds(0)) << "no suspect is measured again";
}

TEST_F(RunScheduleTest, AfterALossNoTimeIsKeptForCasesThatCannotRun) {
  add("lost", 5, true);
  add("local", 30, false);
  add("pairs", 60, true, Stage::pairs);
  RunSchedule schedule(plan);
  EXPECT_EQ(next(schedule, 0), "run lost");
  schedule.lose_ranks(10, {});
  EXPECT_EQ(next(schedule, 20), "run local") << "20 + 30 of 85";
  EXPECT_EQ(next(schedule, 50), "end");
}

/// Cases that lack a node are measured again in the launch that follows.
TEST_F(RunScheduleTest, ALossEndsALaunchWhereTheNextOneHasTime) {
  for (const double restart_s : {24.0, 26.0}) {  // 10 s, a start, 60 s and 3 s for closing, of 100 s
    plan.cases.clear();
    add("lost", 20, true);
    add("local", 10, true);
    add("optional", 10, false);
    add("pairs", 30, true, Stage::pairs);
    RunSchedule schedule(plan);
    EXPECT_EQ(next(schedule, 0), "run lost");
    schedule.lose_ranks(10, restart_s + 2);
    const bool ends = restart_s + 2 <= 27;
    EXPECT_EQ(next(schedule, 10), ends ? "end" : "run local") << restart_s;
  }
}

TEST_F(RunScheduleTest, ALateLossEndsNoLaunchThatNoneFollows) {
  for (const double lost_s : {86.0, 88.0}) {  // a tenth of the budget is left after 3 s for closing, or not
    plan.cases.clear();
    add("first", 1, true);
    add("local", 1, false);
    RunSchedule schedule(plan);
    EXPECT_EQ(next(schedule, 0), "run first");
    schedule.lose_ranks(lost_s, 2);
    EXPECT_EQ(next(schedule, 20), lost_s < 87 ? "end" : "run local") << lost_s;
  }
}

TEST_F(RunScheduleTest, RequiredCasesBeginInTheTimeOfTheLevel) {
  struct Start {
    double budget_s, first_s, last_s;
  };
  for (const auto& [budget_s, first_s, last_s] :  // a start may take longer than the level
       {Start{100, 5, 100}, Start{15, 2, 32}, Start{15, 40, 70}}) {
    plan.cases.clear();
    plan.budget_s = budget_s;
    for (const char* name : {"a", "b", "c"}) add(name, 20, true);
    RunSchedule schedule(plan);
    EXPECT_EQ(next(schedule, first_s), "run a");
    EXPECT_EQ(next(schedule, last_s - 0.1), "run b");
    EXPECT_EQ(next(schedule, last_s), "skip c: budget");
  }
}

TEST_F(RunScheduleTest, RequiredCasesBeginWhereTheyEndBeforeTheLimitOfTheRun) {
  plan.budget_s = 15;
  const double limit_s = RunSchedule::limit_s(Level::smoke, plan.budget_s, 0), first_s = 4;
  for (const char* name : {"a", "b", "c", "d"}) add(name, 3, true);
  RunSchedule schedule(plan, limit_s);
  EXPECT_EQ(next(schedule, first_s), "run a");
  EXPECT_EQ(next(schedule, first_s + 14.9), "run b") << "beyond the level, it ends in 20 s of cases";
  EXPECT_EQ(next(schedule, first_s + 15.1), "skip c: budget");
  EXPECT_EQ(next(schedule, first_s + 15.2), "skip d: budget");
  EXPECT_EQ(next(schedule, first_s + 15.3), "end");
  plan.cases.clear();
  add("long", 14, true);
  RunSchedule in_time(plan, 10);
  EXPECT_EQ(next(in_time, 0.5), "run long") << "the time of the level holds it";
}

TEST_F(RunScheduleTest, EarlierLaunchesTakeOfTheTimeAfterWhichARunIsEnded) {
  EXPECT_DOUBLE_EQ(RunSchedule::limit_s(Level::quick, 120, 0), 137);
  EXPECT_DOUBLE_EQ(RunSchedule::limit_s(Level::quick, 120, 50), 87);
  // What is required may begin 30 s after the first case.
  EXPECT_DOUBLE_EQ(RunSchedule::limit_s(Level::quick, 120, 118), 45);
  EXPECT_DOUBLE_EQ(RunSchedule::limit_s(Level::smoke, 15, 0), 20);
  EXPECT_DOUBLE_EQ(RunSchedule::limit_s(Level::smoke, 15, 14), 20);
}

TEST_F(RunScheduleTest, CaseMayTakeAQuarterOfSpareTime) {
  add("a", 10, true);
  add("b", 30, true);
  RunSchedule schedule(plan);
  EXPECT_DOUBLE_EQ(schedule.next(stored, 20).seconds, 11.3 + 0.25 * (97 - 20 - 30 - 10));
  EXPECT_DOUBLE_EQ(schedule.next(stored, 90).seconds, 33.3) << "never less than planned";
}

// 80 MB are judged, and merged, in a second.
TEST_F(RunScheduleTest, WhatIsStoredLeavesTimeToJudgeAndMergeIt) {
  add("a", 1, true);
  add("optional", 10, false);
  RunSchedule schedule(plan);
  EXPECT_EQ(next(schedule), "run a");
  schedule.has_stored(800'000'000);
  RunSchedule late = schedule;
  EXPECT_EQ(next(schedule, 37), "run optional")
      << "37 + 10, judged three times and merged in 40 s, 12 s of retests";
  EXPECT_EQ(next(late, 39), "skip optional: budget");
  EXPECT_DOUBLE_EQ(late.retest_seconds(50).value(), 30) << "judged for the file, and merged";
  EXPECT_TRUE(late.time_to_judge(90)) << "what is not confirmed is told";
  late.was_judged(20);
  EXPECT_DOUBLE_EQ(late.retest_seconds(50).value(), 20) << "as slow as it was";
  EXPECT_TRUE(late.time_to_judge(49));
  EXPECT_FALSE(late.time_to_judge(51)) << "no time would be left for a retest";
}

TEST_F(RunScheduleTest, WhatIsToComeLeavesItToo) {
  const auto store = [](Case& c) { c.entities = 100'000, c.samples = 500; };  // 0.8 GB: 40 s
  add("early", 10, false);
  store(add("last", 10, true));
  RunSchedule schedule(plan);
  EXPECT_EQ(next(schedule, 29), "run last") << "29 + 10 + 10 + 40 of 88";
  EXPECT_EQ(next(schedule, 39), "run early") << "what the last one has really stored is little";
  plan.cases.clear();
  store(add("large", 10, false));
  RunSchedule at_once(plan), late(plan);
  EXPECT_EQ(next(at_once, 37), "run large");
  EXPECT_EQ(next(late, 39), "skip large: budget");
}

TEST_F(RunScheduleTest, RetestsAreAppendedAndAlwaysRun) {
  add("a", 1, true);
  RunSchedule schedule(plan);
  EXPECT_EQ(next(schedule), "run a");
  EXPECT_EQ(next(schedule, 80), "end");
  EXPECT_DOUBLE_EQ(schedule.retest_seconds(80).value(), 17);
  add("a.c1", 15, false).retest = std::make_shared<RetestOrder>();
  EXPECT_EQ(next(schedule, 80), "run a.c1") << "beyond the 85 s of optional cases";
  EXPECT_EQ(next(schedule, 95), "end");
}

}  // namespace
}  // namespace assay
