// SPDX-License-Identifier: Apache-2.0
// Ranks that take no part, a run that cannot begin or be closed, or is long, and ranks that end while they
// are looked at.
#include <csignal>

#include "collector_rig.hpp"

namespace assay::supervisor {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(CollectorTest, ARunThatCannotBeginEndsInOrderAndBlamesNobody) {
  controller.fails_to_begin = true;
  begin();
  EXPECT_EQ(controller.why, "disk full");
  EXPECT_EQ(count(1, MessageType::step, no_more_cases), 1);
  EXPECT_THAT(controller.losses, IsEmpty());
  EXPECT_EQ(collector.code(), 3);
}

TEST_F(CollectorTest, ASegmentThatCannotBeClosedIsKeptAndNoOtherBegins) {
  controller.cases = 1;
  controller.segments = 2;
  controller.fails_to_finish = true;
  begin();
  record(0, {0, 1, 2, 3});
  EXPECT_EQ(count(2, MessageType::step, next_segment), 0);
  EXPECT_EQ(count(2, MessageType::step, no_more_cases), 1);
  for (int r = 0; r < 4; ++r) say(r, MessageType::bye, 0);
  collector.tend(now);
  all_done();
  EXPECT_FALSE(controller.discarded);
  EXPECT_EQ(told.size(), 1U) << "once";
  EXPECT_TRUE(collector.over());
  EXPECT_EQ(collector.code(), 3);
}

TEST_F(CollectorTest, ALongCaseShowsOtherHostsThatTheRunLives) {
  begin();
  std::map<int, Snapshot> at;
  for (int r = 0; r < 4; ++r) at[r] = running(0, Call::none);
  for (int i = 1; i <= 5; ++i) {
    pass(15, at, {}, {0, 1, 2, 3});
    EXPECT_GE(controller.shown, i);
  }
  EXPECT_LE(controller.shown, 8) << "every 10 s";
}

class IdleRank : public CollectorTest {
 protected:
  void SetUp() override {
    for (int r = 0; r < 4; ++r) collector.connected(r, r < 3 ? "node00" : "node01", now);
    say(3, MessageType::idle);
    say(0, MessageType::start);
    for (int r = 0; r < 3; ++r) say(r, MessageType::ready);
  }
};

TEST_F(IdleRank, IsNoLossWhenItsHostIsAndTheOthersDoNotWaitForIt) {
  pass(9, {}, {3}, {0, 1, 2});
  EXPECT_THAT(told, Contains(HasSubstr("rank 3 on node01, which takes no part, is unreachable")));
  EXPECT_THAT(controller.losses, IsEmpty());
  EXPECT_FALSE(collector.in_order()) << "nobody can leave MPI with it";
  EXPECT_TRUE(collector.lost_a_host()) << "the launcher waits for it";
  for (const int c : {0, 1, 2}) record(c, {0, 1, 2});
  EXPECT_EQ(controller.why, "");
  for (int r = 0; r < 3; ++r) say(r, MessageType::done);
  collector.tend(now);
  EXPECT_TRUE(collector.over());
  EXPECT_EQ(collector.code(), 0);
}

TEST_F(IdleRank, GoesOnOverANewConnection) {
  collector.connected(3, "node01", now);
  EXPECT_EQ(count(3, MessageType::kill), 0);
}

TEST_F(CollectorTest, TheNetworkOfTheFirstRankEndsTheRunAlsoIfItTakesNoPart) {
  for (int r = 0; r < 4; ++r) collector.connected(r, "node0" + std::to_string(r), now);
  say(0, MessageType::idle);
  say(1, MessageType::start);
  for (int r = 1; r < 4; ++r) say(r, MessageType::ready);
  pass(8, {}, {1, 2, 3});
  EXPECT_EQ(controller.why,
            "rank 0 on node00, which takes no part, receives nothing from other hosts: the "
            "network of its host is down");
  EXPECT_THAT(told, Contains(HasSubstr("the network of its host is down")));
  EXPECT_THAT(controller.losses, IsEmpty());
}

TEST_F(CollectorTest, RanksThatDieWhileTheyAreLookedAtLetTheirCaseEnd) {
  begin();
  record(0, {0, 1, 3});
  pass(11, {{2, running(0, Call::none)}});
  ASSERT_EQ(count(2, MessageType::trace_request), 1);
  say(2, MessageType::died, SIGKILL);
  collector.tend(now);
  EXPECT_THAT(controller.stored, ::testing::Contains(::testing::Key(0)));
  EXPECT_EQ(count(0, MessageType::step, 1), 1);
}

}  // namespace
}  // namespace assay::supervisor
