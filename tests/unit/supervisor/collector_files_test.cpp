// SPDX-License-Identifier: Apache-2.0
// Ranks that wait for the server of a directory that two nodes share.
#include <gtest/gtest.h>

#include "collector_rig.hpp"

namespace assay::supervisor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SharedDirectory : public CollectorTest {
 protected:
  /// Case 2, which all ranks run, works in a shared directory.
  void begin_case() {
    controller.shared = "/lustre";
    begin();
    record(0, {0, 1, 2, 3});
    record(1, {0, 1, 2, 3});
  }
  /// Ranks at work on files; the others wait for them.
  std::map<int, Snapshot> at_work(std::set<int> ranks) {
    std::map<int, Snapshot> at;
    for (int r = 0; r < 4; ++r) at[r] = running(2, ranks.contains(r) ? Call::files : Call::barrier);
    return at;
  }
};

TEST_F(SharedDirectory, AServerThatAnswersAfterAWhileIsNoHangAndIsTold) {
  begin_case();
  pass(55, at_work({0, 1, 2, 3}));
  pass(1, at_work({0, 1, 2, 3}), {}, {0, 1, 2, 3});
  record(2, {0, 1, 2, 3});
  EXPECT_THAT(controller.losses, IsEmpty());
  EXPECT_EQ(controller.why, "");
  EXPECT_THAT(controller.stalls,
              ElementsAre("/lustre did not answer for 54 s on 2 nodes in case2, and then did"));
}

TEST_F(SharedDirectory, AMomentWithoutAnAnswerIsNotTold) {
  begin_case();
  pass(9, at_work({0, 1, 2, 3}));
  record(2, {0, 1, 2, 3});
  EXPECT_THAT(controller.stalls, IsEmpty());
}

TEST_F(SharedDirectory, AServerThatAnswersNobodyIsNamedAndNoNode) {
  begin_case();
  pass(62, at_work({0, 3}));
  ASSERT_EQ(controller.losses.size(), 1U);
  EXPECT_THAT(controller.losses[0], HasSubstr("stuck: /lustre has not answered on node00, node01 for 6"));
  EXPECT_THAT(controller.losses[0], HasSubstr("no node is accused"));
  EXPECT_THAT(controller.silent_paths, ElementsAre("/lustre"));
  EXPECT_THAT(controller.why, HasSubstr("/lustre has not answered"));
}

TEST_F(SharedDirectory, AStallThatOutlastsTheRunNamesTheServerToo) {
  begin_case();
  pass(59, at_work({0, 3}));
  pass(1, at_work({0, 3}), {}, {0, 3});
  pass(45, at_work({0, 3}));  // 105 s, of 100 that the run may take
  ASSERT_EQ(controller.losses.size(), 1U);
  EXPECT_THAT(controller.losses[0], HasSubstr("stuck: /lustre has not answered on node00, node01 for 4"));
}

TEST_F(SharedDirectory, TheOnlyNodeThatGetsNoAnswerIsAtFaultWhileAnotherGetsOne) {
  begin_case();
  pass(60.5, at_work({2}));
  EXPECT_EQ(count(0, MessageType::touch), 1) << "one rank of the other node is asked";
  EXPECT_EQ(count(1, MessageType::touch) + count(2, MessageType::touch) + count(3, MessageType::touch), 0);
  EXPECT_THAT(controller.losses, IsEmpty());
  say(0, MessageType::touched);
  collector.tend(now);
  say(2, MessageType::trace, 0, "pwrite64\n");
  collector.tend(now);
  ASSERT_FALSE(controller.losses.empty());
  EXPECT_THAT(controller.losses[0],
              HasSubstr("hang: rank 2 on node01 did not end case2 in time: /lustre does not "
                        "answer it, and answers 1 other node"));
  EXPECT_THAT(controller.silent_paths, IsEmpty());
}

TEST_F(SharedDirectory, WhereItAnswersNeitherNodeOneThatWaitedForTheOtherIsNoEvidence) {
  begin_case();
  pass(66, at_work({2}));
  ASSERT_FALSE(controller.losses.empty());
  EXPECT_THAT(controller.losses[0], HasSubstr("stuck: /lustre has not answered on node00, node01"));
}

TEST_F(SharedDirectory, AServerThatAnswersWhileOthersAreAskedIsForgiven) {
  begin_case();
  pass(61, at_work({2}));
  pass(3, at_work({2}), {}, {2});
  record(2, {0, 1, 2, 3});
  EXPECT_THAT(controller.losses, IsEmpty());
  EXPECT_EQ(controller.why, "");
}

TEST_F(SharedDirectory, ALocalDiskThatDoesNotAnswerIsNamed) {
  begin();
  std::map<int, Snapshot> at;
  for (int r = 0; r < 4; ++r) at[r] = running(0, r == 2 ? Call::files : Call::barrier);
  pass(40, at);
  ASSERT_FALSE(controller.losses.empty());
  EXPECT_THAT(controller.losses[0], HasSubstr("hang: rank 2 on node01"));
  EXPECT_THAT(controller.losses[0], HasSubstr("at work on files in /scratch"));
}

TEST_F(SharedDirectory, AStoppedProcessIsFoundAsElsewhere) {
  begin_case();
  auto at = at_work({2});
  at[2].process_state = 'T';
  pass(12, at);
  ASSERT_FALSE(controller.losses.empty());
  EXPECT_THAT(controller.losses[0], HasSubstr("hang: rank 2 on node01"));
}

}  // namespace
}  // namespace assay::supervisor
