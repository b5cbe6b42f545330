// SPDX-License-Identifier: Apache-2.0
// Several ranks that are lost or hang at once.
#include <gtest/gtest.h>

#include "collector_rig.hpp"

namespace assay::supervisor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

/// Four hosts of a rank each.
class FourHosts : public CollectorTest {
 protected:
  void connect() {
    for (int r = 0; r < 4; ++r) collector.connected(r, "node0" + std::to_string(r), now);
  }
  /// In case 2, which needs all.
  void begin_case() {
    connect();
    say(0, MessageType::start);
    for (int r = 0; r < 4; ++r) say(r, MessageType::ready);
    record(0, {0, 1, 2, 3});
    record(1, {0, 1, 2, 3});
  }
  /// Until the stacks of those of `ranks` that are asked are there; the others wait for them.
  void hang(const std::set<int>& ranks) {
    std::map<int, Snapshot> at;
    for (int r = 0; r < 4; ++r) at[r] = running(2, ranks.contains(r) ? Call::none : Call::barrier);
    pass(11, at);
    for (const int r : ranks)
      if (count(r, MessageType::trace_request) > 0) say(r, MessageType::trace, 0, "spin\n");
    collector.tend(now);
  }
};

TEST_F(FourHosts, ThatAreSilentTogetherInAStageAcrossNodesAreAllLost) {
  begin_case();
  pass(8, {}, {2, 3}, {0, 1});
  EXPECT_THAT(controller.losses, ElementsAre(HasSubstr("lost: rank 2 on node02 is unreachable"),
                                             HasSubstr("lost: rank 3 on node03 is unreachable")));
  EXPECT_THAT(controller.why, HasSubstr("rank 2 on node02"));
  EXPECT_TRUE(collector.lost_a_host());
}

TEST_F(FourHosts, ThatAreSilentTogetherBeforeTheFirstCaseAreAllLost) {
  connect();
  pass(8, {}, {2, 3}, {0, 1});
  EXPECT_THAT(controller.events,
              ElementsAre(HasSubstr("lost: rank 2 on node02"), HasSubstr("lost: rank 3 on node03")));
  EXPECT_THAT(controller.why, HasSubstr("rank 2 on node02"));
}

TEST_F(FourHosts, ThatHangTogetherInAStageAcrossNodesAreAllNamed) {
  begin_case();
  hang({1, 3});
  EXPECT_THAT(controller.losses,
              ElementsAre(HasSubstr("hang: rank 1 on node01"), HasSubstr("hang: rank 3 on node03")));
}

TEST_F(FourHosts, OfWhichMostSeemToHangAreNotAllNamed) {
  begin_case();
  hang({1, 2, 3});
  EXPECT_THAT(controller.losses, ElementsAre(HasSubstr("hang: rank 1 on node01")));
}

TEST_F(FourHosts, ThatWaitInAPhaseWhichOthersHaveLeftAreNotAllNamed) {
  connect();
  Snapshot waits, beyond;
  waits.phase = Phase::discovery;
  waits.call = Call::texts;
  beyond.phase = Phase::memory;
  pass(23, {{0, beyond}, {1, beyond}, {2, waits}, {3, waits}});
  EXPECT_THAT(controller.events, ElementsAre(HasSubstr("hang: rank 2 on node02 did not complete")));
}

TEST_F(FourHosts, ThatWaitForEachOtherBeforeTheFirstCaseNameALinkAndNoRank) {
  Snapshot beyond;
  beyond.phase = Phase::memory;
  const auto waits = [](Call call, int peer) {
    Snapshot s;
    s.phase = Phase::discovery;
    s.call = call;
    s.peer = peer;
    return s;
  };
  connect();
  pass(23, {{0, beyond}, {1, waits(Call::wait, 2)}, {2, waits(Call::wait, 3)}, {3, waits(Call::receive, 2)}});
  EXPECT_THAT(controller.losses, ::testing::IsEmpty());
  EXPECT_THAT(controller.events,
              ElementsAre(::testing::StartsWith("stuck: discovery of the machine: an exchange does not end "
                                                "between rank 2 on node02 and rank 3 on node03")));
  EXPECT_THAT(controller.why, HasSubstr("discovery"));
  EXPECT_EQ(controller.without_plan, 1);
  EXPECT_FALSE(collector.lost_a_host());
}

TEST_F(CollectorTest, RanksThatLeftEarlyMakeOneFile) {
  for (const int r : {0, 1}) collector.connected(r, "node00", now);
  for (const int r : {0, 1}) say(r, MessageType::bye, 4);
  pass(6, {}, {2, 3});
  EXPECT_EQ(controller.without_plan, 1);
  EXPECT_THAT(controller.events, ElementsAre(HasSubstr("rank 0 on node00 left early with exit code 4")));
}

TEST_F(CollectorTest, ErrorsOnANodeExplainNoStandstillInsideAnother) {
  begin();
  for (const int r : {0, 1}) say(r, MessageType::record, 0, "broken");
  pass(9, {{2, running(0, Call::wait, 3)}, {3, running(0, Call::receive, 2)}});
  EXPECT_THAT(
      controller.losses,
      ElementsAre(::testing::AllOf(HasSubstr("stuck"), HasSubstr("rank 2 on node01 and rank 3 on node01"))));
}

TEST_F(CollectorTest, AnErrorOnANodeExplainsAStandstillAcrossNodes) {
  begin();
  record(0, {0, 1, 2, 3});
  record(1, {0, 1, 2, 3});
  say(0, MessageType::record, 2, "broken");
  std::map<int, Snapshot> at;
  for (int r = 1; r < 4; ++r) at[r] = running(2, Call::barrier);
  pass(9, at);
  EXPECT_THAT(controller.losses, ElementsAre(HasSubstr("hang: rank 0 on node00 left case2")));
}

TEST_F(CollectorTest, TwoRanksOfAHostThatHangAreOneLoss) {
  begin();
  record(0, {0, 1, 2, 3});
  record(1, {0, 1, 2, 3});
  std::map<int, Snapshot> at;
  for (int r = 0; r < 4; ++r) at[r] = running(2, r < 2 ? Call::none : Call::barrier);
  pass(13, at);
  EXPECT_THAT(controller.losses, SizeIs(1));
}

}  // namespace
}  // namespace assay::supervisor
