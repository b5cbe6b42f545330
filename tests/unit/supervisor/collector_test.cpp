// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <csignal>

#include "base/clock.hpp"
#include "collector_rig.hpp"

namespace assay::supervisor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(CollectorTest, AHealthyRunStoresEveryCaseAndEndsInOrder) {
  begin();
  EXPECT_EQ(count(2, MessageType::step, 0), 1);
  record(0, {0, 1, 2});
  EXPECT_TRUE(controller.stored.empty());
  record(0, {3});
  EXPECT_THAT(controller.stored[0], ElementsAre("r0", "r1", "r2", "r3"));
  record(1, {3, 2, 1, 0});
  record(2, {0, 1, 2, 3});
  EXPECT_EQ(controller.why, "");
  EXPECT_EQ(count(3, MessageType::step, -1), 1);
  EXPECT_FALSE(collector.over());
  all_done();
  EXPECT_TRUE(collector.over());
  EXPECT_EQ(collector.code(), 0);
  EXPECT_THAT(told, IsEmpty());
}

TEST_F(CollectorTest, DeadRankEndsAStageAcrossNodes) {
  begin();
  record(0, {0, 1, 2, 3});
  record(1, {0, 1, 2, 3});
  status(2, running(2, Call::all_reduce));
  say(2, MessageType::died, SIGKILL);
  ASSERT_EQ(controller.losses.size(), 1u);
  EXPECT_THAT(controller.losses[0],
              HasSubstr("lost: rank 2 on node01 was killed by signal 9 (Killed): in case2"));
  EXPECT_THAT(controller.losses[0], HasSubstr("inside a all-reduce of its group"));
  EXPECT_EQ(count(0, MessageType::kill), 2);  // as affected, and at the end
  EXPECT_THAT(controller.why, HasSubstr("rank 2 on node01"));
  all_done();
  EXPECT_EQ(collector.code(), 3);
}

TEST_F(CollectorTest, ALossInANodeLocalStageEndsThatNodeOnly) {
  begin();
  record(0, {0, 1});
  say(3, MessageType::died, SIGSEGV);
  EXPECT_THAT(controller.stored[0], ElementsAre("r0", "r1", "", ""));
  EXPECT_EQ(count(0, MessageType::kill), 0);
  EXPECT_EQ(count(2, MessageType::kill), 1);
  EXPECT_EQ(count(0, MessageType::step, 1), 1);
  EXPECT_EQ(count(2, MessageType::step, 1), 0);
  record(1, {0, 1});
  EXPECT_THAT(controller.stored[1], ElementsAre("r0", "r1", "", ""));
  EXPECT_THAT(controller.why, HasSubstr("rank 3 on node01"));  // what needs the whole job is not run
  EXPECT_EQ(count(0, MessageType::kill), 1);                   // nobody can leave MPI in order any more
}

TEST_F(CollectorTest, HangNamesTheRankOutsideMpi) {
  begin();
  record(0, {0, 3});
  pass(11, {{1, running(0, Call::none)}, {2, running(0, Call::receive, 1)}});
  EXPECT_EQ(count(1, MessageType::trace_request), 1);
  EXPECT_EQ(count(2, MessageType::trace_request), 0);
  say(1, MessageType::trace, 0, "spin (assay)\n");
  collector.tend(now);
  ASSERT_EQ(controller.losses.size(), 1u);
  EXPECT_THAT(controller.losses[0], HasSubstr("hang: rank 1 on node00 did not end case0 in time"));
  EXPECT_THAT(told, ::testing::Contains(HasSubstr("spin (assay)")));
}

TEST_F(CollectorTest, RankThatLeftACollectiveIsBlamed) {
  begin();
  say(1, MessageType::record, 0, "broken");
  pass(14,
       {{0, running(0, Call::all_reduce)}, {2, running(0, Call::barrier)}, {3, running(0, Call::barrier)}});
  ASSERT_FALSE(controller.losses.empty());
  EXPECT_THAT(controller.losses[0], ::testing::ContainsRegex("rank 1 on node00 left case0 .*it broke"));
}

/// Processor time of the starts and records of so many ranks, the least of three.
double case_s(int ranks) {
  double least = 1e9;
  for (int repeat = 0; repeat < 3; ++repeat) {
    FakeController controller;
    Collector collector(
        ranks, controller, [](int, const Message&) {}, [](const std::string&) {}, 1000);
    for (int r = 0; r < ranks; ++r) collector.connected(r, "node", 1000);
    collector.handle({MessageType::start, 0, 0, ""}, 1000);
    const double begin = process_cpu_s();
    for (int r = 0; r < ranks; ++r) collector.handle({MessageType::ready, r, 0, ""}, 1000);
    for (int r = 0; r < ranks; ++r) collector.handle({MessageType::record, r, 0, "r"}, 1000);
    least = std::min(least, process_cpu_s() - begin);
    EXPECT_EQ(controller.stored.at(0).size(), static_cast<std::size_t>(ranks));
  }
  return least;
}

TEST(CollectorOfManyRanks, EachRecordTakesAsLongWithEightTimesTheRanks) {
  const double few = case_s(4000), many = case_s(32000);
  EXPECT_LT(many, 24 * few) << few << " s and " << many << " s; linear is 8, a walk over all for each is 64";
}

TEST_F(CollectorTest, ARecordThatCannotBeDecodedEndsTheRun) {
  begin();
  record(0, {0, 1});
  EXPECT_THAT(controller.taken, ::testing::SizeIs(2)) << "taken before the others arrive";
  say(2, MessageType::record, 0, "no record");
  EXPECT_THAT(controller.why, ::testing::HasSubstr("cannot be decoded"));
}

TEST_F(CollectorTest, ACaseThatMovesOnIsLateAndNoHang) {
  begin();
  pass(60, {{0, running(0, Call::receive, 1)}, {1, running(0, Call::send, 0)}}, {}, {1});
  EXPECT_THAT(controller.losses, IsEmpty());
  record(0, {0, 1, 2, 3});
  EXPECT_EQ(controller.stored.size(), 1u);
}

TEST_F(CollectorTest, EndlessExchangeNamesTheLink) {
  begin();
  record(0, {0, 1, 2, 3});
  record(1, {0, 1, 2, 3});
  // Before the case is late: all wait, and nobody moves.
  pass(9, {{0, running(2, Call::wait, 3)},
           {3, running(2, Call::receive, 0)},
           {1, running(2, Call::barrier)},
           {2, running(2, Call::barrier)}});
  ASSERT_EQ(controller.losses.size(), 1u);
  EXPECT_THAT(
      controller.losses[0],
      HasSubstr("stuck: case2: an exchange does not end between rank 0 on node00 and rank 3 on node01"));
  EXPECT_EQ(count(0, MessageType::trace_request), 0);
  EXPECT_EQ(count(3, MessageType::trace_request), 0);
}

TEST_F(CollectorTest, AStandstillInsideANodeEndsThatNodeOnly) {
  begin();
  record(0, {0, 1});
  pass(9, {{2, running(0, Call::wait, 3)}, {3, running(0, Call::receive, 2)}});
  ASSERT_EQ(controller.losses.size(), 1u);
  EXPECT_THAT(controller.losses[0], HasSubstr("between rank 2 on node01 and rank 3 on node01"));
  EXPECT_EQ(count(0, MessageType::step, 1), 1);
  EXPECT_EQ(count(2, MessageType::step, 1), 0);
}

TEST_F(CollectorTest, RankThatWakesDuringTraceStaysBlamed) {
  begin();
  record(0, {0, 2, 3});
  Snapshot stopped = running(0, Call::barrier);
  stopped.process_state = 'T';
  pass(11, {{1, stopped}});
  record(0, {1});
  pass(2);
  ASSERT_EQ(controller.losses.size(), 1u);
  EXPECT_THAT(controller.losses[0], HasSubstr("its process is stopped"));
}

TEST_F(CollectorTest, ASilentSupervisorIsUnreachable) {
  begin();
  record(0, {0, 1, 2});
  pass(8, {}, {3});
  ASSERT_FALSE(controller.losses.empty());
  EXPECT_THAT(controller.losses[0], HasSubstr("rank 3 on node01 is unreachable"));
}

TEST_F(CollectorTest, ASlowWriteDoesNotCountAsSilence) {
  begin();
  pass(1);
  now += 8;  // the collector writes; what the supervisors say in the meantime is not read yet
  collector.tend(now);
  EXPECT_THAT(controller.losses, IsEmpty());
  pass(8, {}, {3}, {0, 1, 2});
  ASSERT_FALSE(controller.losses.empty());
  EXPECT_THAT(controller.losses[0], HasSubstr("rank 3 on node01 is unreachable"));
}

TEST_F(CollectorTest, ASlowWriteDoesNotLetPartnersOfASilentSupervisorStandStillFirst) {
  begin();
  const double began = now;
  const auto wait = [&](double seconds, bool all) {
    for (const double end = now + seconds; now < end; now += 0.5) {
      for (int r = 0; r < (all ? 4 : 3); ++r) {
        Snapshot s = running(0, Call::barrier);
        s.idle_s = now - began;
        status(r, s);
      }
      collector.tend(now);
    }
  };
  wait(1, true);
  now += 3;  // the collector writes
  collector.tend(now);
  wait(7.5, false);
  ASSERT_FALSE(controller.losses.empty());
  EXPECT_THAT(controller.losses[0], HasSubstr("rank 3 on node01 is unreachable"));
}

TEST_F(CollectorTest, WhenNoOtherHostAnswersItIsTheOwnNetwork) {
  for (int r = 0; r < 4; ++r) collector.connected(r, "node0" + std::to_string(r), now);
  say(0, MessageType::start);
  for (int r = 0; r < 4; ++r) say(r, MessageType::ready);
  pass(8, {{0, running(0, Call::barrier)}}, {1, 2, 3});
  ASSERT_FALSE(controller.losses.empty());
  EXPECT_THAT(controller.losses[0], HasSubstr("rank 0 on node00 receives nothing"));
}

TEST_F(CollectorTest, OfTwoHostsNobodyKnowsWhoseNetworkIsDown) {
  for (int r = 0; r < 4; ++r) collector.connected(r, "node0" + std::to_string(r / 2), now);
  say(0, MessageType::start);
  for (int r = 0; r < 4; ++r) say(r, MessageType::ready);
  pass(8, {}, {2, 3}, {0, 1});
  ASSERT_FALSE(controller.losses.empty());
  EXPECT_THAT(controller.losses[0], HasSubstr("rank 2 on node01 is unreachable"));
  EXPECT_THAT(controller.losses[0], HasSubstr("of two hosts the network of either may be down"));
}

TEST_F(CollectorTest, MpiInitHasADeadline) {
  for (int r = 0; r < 4; ++r) collector.connected(r, "node00", now);
  Snapshot in_init, beyond;
  in_init.phase = Phase::mpi_init;
  beyond.phase = Phase::discovery;
  pass(19, {{0, in_init}, {1, beyond}, {2, beyond}, {3, beyond}});
  EXPECT_THAT(told, IsEmpty());
  pass(6, {{0, in_init}, {1, beyond}, {2, beyond}, {3, beyond}});
  ASSERT_FALSE(told.empty());
  EXPECT_THAT(told[0], ::testing::ContainsRegex("rank 0 on node00 .*MPI_Init within 20 s"));
  all_done();
  EXPECT_TRUE(collector.over());
  EXPECT_EQ(collector.code(), 3);
}

TEST_F(CollectorTest, ARankThatIsFarSlowerThanMostHasAShorterDeadline) {
  for (int r = 0; r < 4; ++r) collector.connected(r, "node00", now);
  Snapshot prepares, beyond;
  prepares.phase = Phase::memory;
  beyond.phase = Phase::suites;
  pass(3, {{0, prepares}, {1, prepares}, {2, prepares}, {3, prepares}});
  pass(8, {{0, prepares}, {1, beyond}, {2, beyond}, {3, beyond}});
  EXPECT_THAT(told, IsEmpty());
  pass(6, {{0, prepares}, {1, beyond}, {2, beyond}, {3, beyond}});
  ASSERT_FALSE(told.empty());
  EXPECT_THAT(told[0], ::testing::ContainsRegex(
                           "rank 0 on node00 .*preparation of memory within 1[234] s .most ranks: 3 s"));
}

TEST_F(CollectorTest, RanksThatTakeNoPartSayNothingOfTheUsualTime) {
  for (int r = 0; r < 4; ++r) collector.connected(r, "node00", now);
  Snapshot prepares, rests;
  rests.phase = Phase::waiting;
  pass(3, {{0, prepares}, {1, rests}, {2, rests}, {3, rests}});
  prepares.phase = Phase::memory;
  pass(19, {{0, prepares}, {1, rests}, {2, rests}, {3, rests}});
  EXPECT_THAT(told, IsEmpty());
}

TEST_F(CollectorTest, ARankThatNeverComesIsNamed) {
  for (int r = 0; r < 3; ++r) collector.connected(r, "node00", now);
  Snapshot in_init;
  in_init.phase = Phase::mpi_init;
  pass(25, {{0, in_init}, {1, in_init}, {2, in_init}}, {3});
  ASSERT_FALSE(told.empty());
  EXPECT_THAT(told[0], HasSubstr("rank 3"));
  EXPECT_THAT(told[0], HasSubstr("since the start"));
}

TEST_F(CollectorTest, ALossBeforeThePlanHasAFile) {
  for (int r = 0; r < 3; ++r) collector.connected(r, r < 2 ? "node00" : "node01", now);
  collector.handle({MessageType::died, 2, 9, ""}, now);
  EXPECT_THAT(controller.hosts, ElementsAre("node00", "node00", "node01", ""));
  EXPECT_THAT(controller.events, ElementsAre(HasSubstr("lost: rank 2 on node01 was killed by signal 9")));
  EXPECT_THAT(controller.why, HasSubstr("rank 2"));
}

TEST_F(CollectorTest, ALostSupervisorLosesItsRank) {
  begin();
  collector.disconnected(1, now);
  ASSERT_FALSE(controller.losses.empty());
  EXPECT_THAT(controller.losses[0], HasSubstr("rank 1 on node00 is gone, and its supervisor with it"));
}

TEST_F(CollectorTest, AFullDiskEndsTheRunInOrder) {
  begin();
  controller.fails_to_store = true;
  record(0, {0, 1, 2, 3});
  EXPECT_EQ(controller.why, "disk full");
  EXPECT_EQ(count(1, MessageType::step, -1), 1);
  EXPECT_EQ(count(1, MessageType::kill), 0);
}

TEST_F(CollectorTest, EverySegmentClosesItsFile) {
  controller.cases = 1;
  controller.segments = 2;
  begin();
  record(0, {0, 1, 2, 3});
  EXPECT_EQ(controller.why, "");  // the first file is closed
  EXPECT_FALSE(controller.started());
  EXPECT_EQ(count(2, MessageType::step, next_segment), 1);
  controller.why = "not finished";
  say(0, MessageType::start);
  for (int r = 0; r < 4; ++r) say(r, MessageType::ready);
  record(0, {0, 1, 2, 3});
  EXPECT_EQ(controller.why, "");
  EXPECT_EQ(count(2, MessageType::step, no_more_cases), 1);
  all_done();
  EXPECT_EQ(collector.code(), 0);
}

TEST(WorseCode, FailThenBugThenUsageThenInconclusive) {
  EXPECT_EQ(worse_code(2, 5), 2);
  EXPECT_EQ(worse_code(3, 5), 5);
  EXPECT_EQ(worse_code(3, 0), 3);
  EXPECT_EQ(worse_code(1, 0), 1);
  EXPECT_EQ(worse_code(0, 0), 0);
}

TEST_F(CollectorTest, ABatchSystemsWarningLetsAShortCaseEnd) {
  begin();
  collector.stop(SIGUSR1, now);
  pass(1, {{0, running(0, Call::none)}});
  record(0, {0, 1, 2, 3});
  EXPECT_EQ(controller.stored.size(), 1u);
  EXPECT_THAT(controller.why, HasSubstr("signal 10"));
  EXPECT_EQ(count(1, MessageType::kill), 0);
}

TEST_F(CollectorTest, ABatchSystemsWarningEndsALongCase) {
  begin();
  collector.stop(SIGUSR1, now);
  pass(4, {{0, running(0, Call::none)}});
  EXPECT_THAT(controller.why, HasSubstr("signal 10"));
  EXPECT_EQ(count(1, MessageType::kill), 1);
}

TEST_F(CollectorTest, TermEndsAtOnce) {
  begin();
  collector.stop(SIGTERM, now);
  EXPECT_THAT(controller.why, HasSubstr("signal 15"));
  EXPECT_EQ(count(2, MessageType::kill), 1);
}

TEST_F(CollectorTest, ControllerRefusalReachesRankZero) {
  for (int r = 0; r < 4; ++r) collector.connected(r, "node00", now);
  controller.fails_to_start = true;
  say(0, MessageType::start);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].second.type, MessageType::started);
  EXPECT_EQ(sent[0].second.text, "--out: exists");
  for (int r = 0; r < 4; ++r) say(r, MessageType::bye, 4);
  collector.tend(now);
  all_done();
  EXPECT_TRUE(collector.over());
  EXPECT_EQ(collector.code(), 4);
}

TEST_F(CollectorTest, AnErrorThatAllAgreeOnLeavesNoTrace) {
  for (int r = 0; r < 4; ++r) collector.connected(r, "node00", now);
  say(0, MessageType::start);
  for (int r = 0; r < 4; ++r) say(r, MessageType::bye, 3);
  collector.tend(now);
  EXPECT_TRUE(controller.discarded);
}

TEST_F(CollectorTest, AnErrorThatAllAgreeOnAfterACaseKeepsTheCase) {
  begin();
  record(0, {0, 1, 2, 3});
  for (int r = 0; r < 4; ++r) say(r, MessageType::bye, 5);
  collector.tend(now);
  EXPECT_FALSE(controller.discarded);
  EXPECT_THAT(controller.why, HasSubstr("all ranks left with exit code 5"));
  all_done();
  EXPECT_TRUE(collector.over());
  EXPECT_EQ(collector.code(), 5);
}

TEST_F(CollectorTest, OneRankThatLeavesEarlyIsLost) {
  begin();
  say(2, MessageType::bye, 5);
  pass(6);
  ASSERT_FALSE(controller.losses.empty());
  EXPECT_THAT(controller.losses[0], HasSubstr("rank 2 on node01 left early with exit code 5"));
}

TEST_F(CollectorTest, AStandstillThatNobodyIsBlamedForTellsHowLongItLasted) {
  begin();
  std::map<int, Snapshot> at;
  for (int r = 0; r < 4; ++r) at[r] = running(0, Call::barrier);
  pass(9, at);
  ASSERT_FALSE(controller.losses.empty());
  EXPECT_THAT(controller.losses[0],
              HasSubstr("stuck: case0: 4 ranks made no progress for 8 s; no rank or link could be blamed"));
}

}  // namespace
}  // namespace assay::supervisor
