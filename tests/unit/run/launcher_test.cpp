// SPDX-License-Identifier: Apache-2.0
// How ranks are started, and when they are started again.
#include "run/launcher.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <cstdlib>

#include "run/launch_clock.hpp"
#include "tests/unit/expect_error.hpp"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Nodes = std::set<std::string>;

TEST(Launcher, ARankPerGpuElsePerSocketUnboundAsInTheScripts) {
  EXPECT_THAT(local_launcher({0, 1, 16, true}), IsEmpty());  // one rank needs none
  EXPECT_THAT(local_launcher({0, 2, 32, false}), IsEmpty());
  EXPECT_THAT(local_launcher({0, 2, 32, true}),
              ElementsAre("mpirun", "--mca", "orte_execute_quiet", "1", "-n", "2", "--oversubscribe",
                          "--bind-to", "none", "--mca", "mpi_yield_when_idle", "0"));
  // No core of 64 may be left out where they do not divide.
  EXPECT_THAT(local_launcher({6, 2, 64, true, true}),
              ElementsAre("mpirun", "--mca", "orte_execute_quiet", "1", "-n", "6", "--oversubscribe",
                          "--bind-to", "none"));
  EXPECT_THAT(local_launcher({8, 1, 4, true}), ElementsAre("mpirun", "--mca", "orte_execute_quiet", "1", "-n",
                                                           "8", "--oversubscribe", "--bind-to", "none"));
  EXPECT_THAT(local_launcher({1, 2, 64, true}), IsEmpty());
  EXPECT_THAT(local_launcher({8, 2, 64, true, false, false}), ElementsAre("mpirun", "-n", "8"));
}

TEST(Launcher, WordsAreThoseOfAShellAndLostNodesTakeTheirPlace) {
  EXPECT_THAT(launcher_words("srun --mpi=pmix  -N 16", {}), ElementsAre("srun", "--mpi=pmix", "-N", "16"));
  EXPECT_THAT(launcher_words("a 'b c' \"d e\"f g\\ h ''", {}), ElementsAre("a", "b c", "d ef", "g h", ""));
  EXPECT_THAT(launcher_words("srun --exclude={exclude} x", {}), ElementsAre("srun", "x"));
  EXPECT_THAT(launcher_words("srun --exclude={exclude} x", {"n1", "n2"}),
              ElementsAre("srun", "--exclude=n1,n2", "x"));
  // A word has at most 128 KiB.
  std::set<std::string> thousands;
  for (int i = 10'001; i <= 22'500; ++i) thousands.insert("cluster-node" + std::to_string(i));
  EXPECT_THAT(launcher_words("srun --exclude={exclude} x", thousands),
              ElementsAre("srun", "--exclude=cluster-node[10001-22500]", "x"));
  EXPECT_EQ(usage_message([] { launcher_words("a 'b", {}); }), "--launcher: a quote is not closed");
  EXPECT_EQ(usage_message([] { launcher_words("  ", {}); }), "--launcher: no command");
}

Attempt aborted(Nodes nodes, Nodes lost) {
  Attempt a;
  a.file = true;
  a.nodes = std::move(nodes);
  a.lost = std::move(lost);
  return a;
}

NextLaunch next(const std::vector<Attempt>& attempts, Nodes excluded = {}, int relaunches = 2,
                double left_s = 60) {
  return next_launch(attempts, excluded, relaunches, left_s, 12);
}

TEST(Launcher, WhatIsLeftGoesOn) {
  const auto lost = aborted({"a", "b", "c"}, {"b"});
  EXPECT_TRUE(next({lost}).wanted);
  EXPECT_EQ(next({lost}).exclude, Nodes{"b"});
  EXPECT_EQ(next({lost, aborted({"a", "c"}, {"c"})}, {"b"}).exclude, (Nodes{"b", "c"}));
  EXPECT_FALSE(next({lost, lost, lost}).wanted);
  EXPECT_FALSE(next({lost}, {}, 0).wanted);
  EXPECT_FALSE(next({lost}, {}, 2, 5).wanted);  // no time
}

TEST(Launcher, WhereNoOtherNodeIsLeftItIsTriedOnceMore) {
  const auto all = aborted({"a"}, {"a"});
  EXPECT_TRUE(next({all}).wanted);
  EXPECT_THAT(next({all}).exclude, IsEmpty());
  EXPECT_FALSE(next({all, all}).wanted);
}

TEST(Launcher, WhereNobodyIsToBlameAllAreTriedOnceMore) {
  auto stuck = aborted({"a", "b"}, {});
  EXPECT_FALSE(next({stuck}).wanted);  // ended for another reason
  stuck.stuck = true;
  EXPECT_TRUE(next({stuck}).wanted);
  EXPECT_FALSE(next({stuck, stuck}).wanted);
}

TEST(Launcher, WhatIsCompleteOrWasAskedToEndIsNotStartedAgain) {
  auto a = aborted({"a", "b"}, {"b"});
  a.complete = true;
  EXPECT_FALSE(next({a}).wanted);
  a.complete = false;
  a.told = true;
  EXPECT_FALSE(next({a}).wanted);
  EXPECT_FALSE(next({Attempt{}}).wanted);  // the launcher could not start
}

TEST(Launcher, ALaunchThatDidNotBeginIsRepeatedWithoutTheNodesThatDoNotAnswer) {
  Attempt a;
  a.nodes = {"a", "b", "c"};
  EXPECT_FALSE(next({a}).wanted) << "all answer";
  a.lost = {"b"};
  EXPECT_TRUE(next({a}).wanted);
  EXPECT_EQ(next({a}, {"d"}).exclude, (Nodes{"b", "d"}));
  EXPECT_FALSE(next({a}, {}, 0).wanted);
  a.lost = a.nodes;
  EXPECT_FALSE(next({a}).wanted) << "none answers";
}

TEST(Launcher, ARunWhoseRankZeroIsGoneGoesOnFromWhatItLeft) {
  Attempt a;
  a.partial = true;
  a.nodes = a.lost = {"a"};
  EXPECT_TRUE(next({a}).wanted);
  a.nodes = {"a", "b", "c"};
  EXPECT_EQ(next({a}).exclude, Nodes{"a"});
}

TEST(Launcher, ALauncherThatOutlivesItsRunIsOverdue) {
  constexpr double smoke_s = 15, quick_s = 120;
  EXPECT_FALSE(launcher_overdue(-1, -1, smoke_s, 0)) << "still in a queue";
  EXPECT_FALSE(launcher_overdue(66, -1, smoke_s, 0));
  EXPECT_TRUE(launcher_overdue(67, -1, smoke_s, 0));
  EXPECT_FALSE(launcher_overdue(300, -1, smoke_s, 1'200'000'000)) << "a file of 100,000 ranks";
  EXPECT_TRUE(launcher_overdue(310, -1, smoke_s, 1'200'000'000));
  EXPECT_FALSE(launcher_overdue(316, -1, quick_s, 0));
  EXPECT_TRUE(launcher_overdue(318, -1, quick_s, 0));
  EXPECT_TRUE(launcher_overdue(8200, -1, 7200, 0)) << "a night is not twice as long";
  EXPECT_FALSE(launcher_overdue(30, 14, smoke_s, 0));
  EXPECT_TRUE(launcher_overdue(30, 16, smoke_s, 0)) << "the results file is closed";
  EXPECT_FALSE(launcher_overdue(240, 59, quick_s, 0));
  EXPECT_TRUE(launcher_overdue(240, 61, quick_s, 0));
  EXPECT_TRUE(launcher_overdue(10.5, 10.5, 0, 0));
}

TEST(Launcher, AQueueComesBeforeTheRanksOfSrunOutsideOfAJobOnly) {
  const std::vector<const char*> jobs{"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID"};
  for (const char* job : jobs) unsetenv(job);
  EXPECT_TRUE(starts_at_once(""));
  EXPECT_TRUE(starts_at_once("mpirun --hostfile hosts"));
  EXPECT_TRUE(starts_at_once("bash launch.sh start --without={exclude} '/usr/bin/mpiexec' '-n' '4' '--'"));
  EXPECT_TRUE(starts_at_once("mpiexec.hydra -n 4"));
  EXPECT_FALSE(starts_at_once("srun -N 4 --exclude={exclude}"));
  EXPECT_FALSE(starts_at_once("./launch-on-fleet"));
  for (const char* queue : {"salloc -N 4", "/usr/bin/srun --pty", "qsub -I --", "bsub -I", "flux alloc -N 4"})
    EXPECT_FALSE(starts_at_once(std::string(queue) + " mpirun -n 4")) << queue;
  for (const char* job : jobs) {
    setenv(job, "7", 1);
    EXPECT_TRUE(starts_at_once("srun -N 4")) << job;
    EXPECT_TRUE(starts_at_once("salloc -N 4 mpirun")) << job;
    unsetenv(job);
  }
}

TEST(Launcher, AWriterThatShowsNoLifeIsGone) {
  EXPECT_FALSE(writer_silent(119, 0)) << "a file server fails over";
  EXPECT_TRUE(writer_silent(121, 0));
  EXPECT_FALSE(writer_silent(1e6, std::nullopt)) << "what it closes is in the spool of another host";
  EXPECT_FALSE(writer_silent(300, 1'200'000'000)) << "it judges 100,000 ranks";
  EXPECT_TRUE(writer_silent(361, 1'200'000'000));
}

TEST(SignOfLife, CountsWhileThisProcessLooks) {
  const SignOfLife::Time first(std::filesystem::file_time_type::clock::now());
  SignOfLife life;
  double now = 1000;
  for (int i = 0; i < 60; ++i) life.still_s(first, now += 1);
  EXPECT_EQ(life.still_s(first, now += 1), 60);
  EXPECT_EQ(life.still_s(first, now += 500), 62) << "this process waited for the file server";
  EXPECT_EQ(life.still_s(*first + std::chrono::seconds(10), now += 1), 0);
  EXPECT_EQ(life.still_s(*first + std::chrono::seconds(10), now += 1), 1);
  EXPECT_EQ(life.still_s(std::nullopt, now += 1), 0) << "between two segments";
}

}  // namespace
}  // namespace assay
