// SPDX-License-Identifier: Apache-2.0
// Time in which the collector itself did not run: what ranks did in it is not read yet.
#include <gtest/gtest.h>

#include "collector_rig.hpp"

namespace assay::supervisor {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(CollectorTest, TheTimeToTakeTheStartIsNotThePhaseOfRankZero) {
  for (int r = 0; r < 4; ++r) collector.connected(r, r < 2 ? "node00" : "node01", now);
  Snapshot waits, asks;
  waits.phase = asks.phase = Phase::discovery;
  waits.call = Call::texts;  // for rank 0, which waits for the answer of the collector
  const std::map<int, Snapshot> at{{0, asks}, {1, waits}, {2, waits}, {3, waits}};
  pass(5, at);
  say(0, MessageType::start);
  now += 30;
  pass(2, at);
  EXPECT_EQ(count(0, MessageType::trace_request), 0);
  EXPECT_THAT(told, IsEmpty());
  pass(15, at);
  EXPECT_EQ(count(0, MessageType::trace_request), 1) << "the time in which the collector ran counts";
}

TEST_F(CollectorTest, ACaseThatWasSentBeforeASlowWriteHasItsWholeTime) {
  begin();
  now += 15;
  collector.tend(now);
  std::map<int, Snapshot> at;
  for (int r = 0; r < 4; ++r) at[r] = running(0, Call::none);
  pass(7, at);
  for (int r = 0; r < 4; ++r) EXPECT_EQ(count(r, MessageType::trace_request), 0);
  pass(7, at);
  EXPECT_EQ(count(0, MessageType::trace_request), 1);
}

TEST_F(CollectorTest, AStackThatArrivesDuringASlowWriteIsRead) {
  begin();
  record(0, {0, 2, 3});
  pass(11, {{1, running(0, Call::none)}});
  ASSERT_EQ(count(1, MessageType::trace_request), 1);
  now += 5;
  collector.tend(now);
  EXPECT_THAT(controller.losses, IsEmpty());
  say(1, MessageType::trace, 0, "spin (assay)\n");
  collector.tend(now);
  EXPECT_THAT(controller.losses, SizeIs(1));
  EXPECT_THAT(told, ::testing::Contains(HasSubstr("spin (assay)")));
}

TEST_F(CollectorTest, RanksThatLeftTogetherDuringASlowWriteAreNotLost) {
  for (int r = 0; r < 4; ++r) collector.connected(r, "node00", now);
  pass(1);
  say(0, MessageType::bye, 4);
  now += 8;
  collector.tend(now);
  for (int r = 1; r < 4; ++r) say(r, MessageType::bye, 4);
  collector.tend(now);
  all_done();
  EXPECT_THAT(controller.events, IsEmpty());
  EXPECT_EQ(collector.code(), 4);
}

/// The run was over at the first look after the write: the launcher then waited for that host without end.
TEST_F(CollectorTest, AHostThatIsCutOffDuringASlowLastWriteIsTold) {
  begin();
  for (int c = 0; c < 3; ++c) record(c, {0, 1, 2, 3});
  ASSERT_EQ(controller.why, "");
  now += 15;
  collector.tend(now);
  EXPECT_FALSE(collector.over());
  pass(14, {}, {2, 3});
  EXPECT_TRUE(collector.over());
  EXPECT_TRUE(collector.lost_a_host());
  EXPECT_THAT(told, ::testing::Contains(HasSubstr("no message from node01 while the run ended")));
}

}  // namespace
}  // namespace assay::supervisor
