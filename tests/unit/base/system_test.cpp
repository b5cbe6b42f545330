// SPDX-License-Identifier: Apache-2.0
#include "base/system.hpp"

#include <gmock/gmock.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>

#include "base/error.hpp"
#include "base/process_stat.hpp"
#include "tests/unit/topology_tree.hpp"

namespace assay {
namespace {
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kVariables[] = {"OMPI_COMM_WORLD_RANK",
                                      "OMPI_COMM_WORLD_SIZE",
                                      "OMPI_COMM_WORLD_LOCAL_RANK",
                                      "OMPI_COMM_WORLD_LOCAL_SIZE",
                                      "PMI_RANK",
                                      "PMI_SIZE",
                                      "PMIX_RANK",
                                      "SLURM_PROCID",
                                      "SLURM_STEP_ID",
                                      "SLURM_STEPID",
                                      "SLURM_STEP_NUM_TASKS",
                                      "SLURM_NTASKS",
                                      "SLURM_LOCALID",
                                      "MPI_LOCALRANKID",
                                      "MPI_LOCALNRANKS",
                                      "OMPI_MCA_rmaps_base_oversubscribe",
                                      "OMPI_MCA_rmaps_base_mapping_policy",
                                      "SLURM_OVERCOMMIT",
                                      "SLURM_STEP_TASKS_PER_NODE",
                                      "SLURM_NODEID",
                                      "PALS_LOCAL_SIZE",
                                      "FLUX_JOB_SIZE",
                                      "FLUX_JOB_NNODES"};

using Variables = std::map<std::string, std::string>;

/// Runs with these launcher variables and no others; puts the old ones back.
class Launch {
 public:
  explicit Launch(const Variables& variables) {
    for (const char* name : kVariables) {
      const char* old = std::getenv(name);
      old_[name] = old == nullptr ? std::nullopt : std::optional<std::string>(old);
      unsetenv(name);
    }
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  }
  ~Launch() {
    for (const auto& [name, value] : old_) {
      if (value)
        setenv(name.c_str(), value->c_str(), 1);
      else
        unsetenv(name.c_str());
    }
  }
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

 private:
  std::map<std::string, std::optional<std::string>> old_;
};

TEST(LaunchEnvironment, ASingletonSpeaksForAll) {
  const Launch launch(Variables{});
  const LaunchEnvironment env = launch_environment();
  EXPECT_FALSE(env.launched);
  EXPECT_EQ(env.rank, -1);
  EXPECT_EQ(env.launcher, "none");
  EXPECT_TRUE(speaks_for_all());
}

TEST(LaunchEnvironment, OpenMpiInsideSlurmIsOpenMpi) {
  const Launch launch(Variables{{"OMPI_COMM_WORLD_RANK", "3"},
                                {"OMPI_COMM_WORLD_SIZE", "8"},
                                {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                                {"PMIX_RANK", "3"},
                                {"SLURM_PROCID", "0"},
                                {"SLURM_STEP_ID", "0"},
                                {"SLURM_STEP_NUM_TASKS", "1"}});
  const LaunchEnvironment env = launch_environment();
  EXPECT_EQ(env.launcher, "openmpi");
  EXPECT_EQ(env.rank, 3);
  EXPECT_EQ(env.size, 8);
  EXPECT_EQ(env.local_rank, 1);
  EXPECT_EQ(env.local_size, 2);
  EXPECT_FALSE(speaks_for_all());
}

TEST(LaunchEnvironment, KnowsWhetherOversubscriptionWasAskedFor) {
  const char* const policy = "OMPI_MCA_rmaps_base_mapping_policy";
  const auto asked = [](const char* name, const char* value) {
    const Launch launch(Variables{{name, value}});
    return launch_environment().oversubscribe_asked;
  };
  EXPECT_FALSE(asked("SLURM_OVERCOMMIT", "0"));
  EXPECT_TRUE(asked("SLURM_OVERCOMMIT", "1"));
  EXPECT_FALSE(asked("OMPI_MCA_rmaps_base_oversubscribe", "0"));
  EXPECT_TRUE(asked("OMPI_MCA_rmaps_base_oversubscribe", "1"));
  EXPECT_FALSE(asked(policy, "core"));
  EXPECT_FALSE(asked(policy, "core:NOOVERSUBSCRIBE"));
  EXPECT_TRUE(asked(policy, "core:OVERSUBSCRIBE"));
}

TEST(LaunchEnvironment, SrunWithAndWithoutPmi) {
  {
    const Launch launch(Variables{{"PMIX_RANK", "2"},
                                  {"SLURM_PROCID", "2"},
                                  {"SLURM_STEP_ID", "0"},
                                  {"SLURM_STEP_NUM_TASKS", "4"},
                                  {"SLURM_LOCALID", "1"}});
    EXPECT_EQ(launch_environment().launcher, "slurm");
    EXPECT_EQ(launch_environment().size, 4);
    EXPECT_EQ(launch_environment().local_rank, 1);
  }
  const Launch launch(
      Variables{{"SLURM_PROCID", "1"}, {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "4"}});
  EXPECT_EQ(launch_environment().size, 4) << "this is how accidental singletons are seen";
}

TEST(LaunchEnvironment, SlurmTellsTheTasksOfThisNode) {
  const auto of = [](const char* tasks, const char* node, const char* in_all) {
    const Launch launch(Variables{{"SLURM_PROCID", "0"},
                                  {"SLURM_STEP_ID", "0"},
                                  {"SLURM_STEP_NUM_TASKS", in_all},
                                  {"SLURM_STEP_TASKS_PER_NODE", tasks},
                                  {"SLURM_NODEID", node}});
    return launch_environment().local_size;
  };
  EXPECT_EQ(of("8(x511),4", "0", "4092"), 8);
  EXPECT_EQ(of("8(x511),4", "510", "4092"), 8);
  EXPECT_EQ(of("8(x511),4", "511", "4092"), 4);
  EXPECT_EQ(of("8(x511),4", "512", "4092"), -1);
  EXPECT_EQ(of("2,4(x2)", "2", "10"), 4);
  EXPECT_EQ(of("4", "0", "4"), 4);
  EXPECT_EQ(of("8", "0", "4"), -1) << "more than there are in all";
  for (const char* nonsense : {"", "x", "8(x", "8(x)", "8(x0)", "(x2)", ","})
    EXPECT_EQ(of(nonsense, "0", "16"), -1);
  EXPECT_EQ(of("4", "-1", "16"), -1);
}

TEST(LaunchEnvironment, RanksOfThisNodeBelowOtherLaunchers) {
  const auto of = [](Variables more) {
    more.insert({{"PMI_RANK", "0"}, {"PMI_SIZE", "10"}});
    const Launch launch(more);
    return launch_environment().local_size;
  };
  EXPECT_EQ(of({{"PALS_LOCAL_SIZE", "5"}}), 5);
  EXPECT_EQ(of({{"FLUX_JOB_SIZE", "10"}, {"FLUX_JOB_NNODES", "1"}}), 10);
  EXPECT_EQ(of({{"FLUX_JOB_SIZE", "10"}, {"FLUX_JOB_NNODES", "3"}}), 4);
  EXPECT_EQ(of({{"FLUX_JOB_SIZE", "3"}, {"FLUX_JOB_NNODES", "3"}}), -1) << "a launcher of its own inside";
  EXPECT_EQ(of({{"MPI_LOCALNRANKS", "2"}, {"PALS_LOCAL_SIZE", "5"}}), 2);
  EXPECT_EQ(of({}), -1);
}

TEST(LaunchEnvironment, ABatchScriptIsNoRank) {
  const Launch script(Variables{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "64"}});
  EXPECT_FALSE(launch_environment().launched);
  const Launch step(
      Variables{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "64"}, {"SLURM_STEP_ID", "4294967291"}});
  EXPECT_FALSE(launch_environment().launched);
}

TEST(LaunchEnvironment, HydraAndNonsense) {
  {
    const Launch launch(Variables{
        {"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}});
    EXPECT_EQ(launch_environment().launcher, "pmi");
    EXPECT_EQ(launch_environment().size, 2) << "Slurm counts the launcher's proxies, not the ranks";
    EXPECT_TRUE(speaks_for_all());
  }
  const Launch launch(Variables{{"OMPI_COMM_WORLD_RANK", "many"}});
  EXPECT_FALSE(launch_environment().launched);
}

TEST(CpuList, BothWays) {
  EXPECT_EQ(format_cpu_list({0, 1, 2, 3, 8}), "0-3,8");
  EXPECT_EQ(format_cpu_list({5, 4, 4}), "4-5");
  EXPECT_EQ(format_cpu_list({}), "");
  EXPECT_THAT(parse_cpu_list("0-3,8"), ElementsAre(0, 1, 2, 3, 8));
  EXPECT_THAT(parse_cpu_list(""), IsEmpty());
  for (const char* nonsense :
       {"a", "3-", "-3", "3-1", "1,,2", "1,", "0x1", "1-2-3", "99999999999", "0-99999999"}) {
    EXPECT_THROW(parse_cpu_list(nonsense), Error) << nonsense;
  }
}

TEST(System, AllowedCpusAndHostName) {
  EXPECT_FALSE(allowed_cpus().empty());
  EXPECT_EQ(host_name().find('.'), std::string::npos);
  EXPECT_FALSE(host_name().empty());
}

TEST(System, SmallFiles) {
  testing::Tree tree;
  tree.file("/a", "12 \n\n").file("/b", "0x1f\n").file("/c", "12x\n").file("/d", "\n").file("/e", "-4\n");
  EXPECT_EQ(read_text(tree.root() + "/a"), "12");
  EXPECT_EQ(read_integer(tree.root() + "/a"), 12);
  EXPECT_EQ(read_integer(tree.root() + "/b"), 31);
  EXPECT_EQ(read_integer(tree.root() + "/c"), std::nullopt);
  EXPECT_EQ(read_integer(tree.root() + "/d"), std::nullopt);
  EXPECT_EQ(read_integer(tree.root() + "/e"), -4);
  EXPECT_EQ(read_text(tree.root() + "/d"), "");
  EXPECT_EQ(read_text(tree.root() + "/none"), std::nullopt);
  EXPECT_EQ(read_text(tree.root()), std::nullopt) << "a directory is no text";
}

TEST(System, ProcessStatWithAParenthesisInTheName) {
  testing::Tree tree;
  const std::string middle = " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 ";
  tree.file("/7/stat", "7 (a) b ()) S 41" + middle + "123456789012 99\n")
      .file("/8/stat", "8 (gone) Z 1" + middle + "5 0\n")
      .file("/9/stat", "9 no name\n")
      .file("/10/stat", "10 (short) R 2 3\n");
  const auto running = process_stat("7", tree.root());
  ASSERT_TRUE(running);
  EXPECT_EQ(running->parent, 41);
  EXPECT_EQ(running->start, 123456789012U);
  EXPECT_FALSE(running->ended());
  EXPECT_TRUE(process_stat("8", tree.root())->ended());
  EXPECT_EQ(process_stat("9", tree.root()), std::nullopt);
  EXPECT_EQ(process_stat("10", tree.root())->start, 0U) << "a start that is not there";
  EXPECT_EQ(process_stat("11", tree.root()), std::nullopt);
  const auto self = process_stat("self");
  ASSERT_TRUE(self);
  EXPECT_EQ(self->parent, ::getppid());
  EXPECT_GT(self->start, 0U);
}

}  // namespace
TEST(System, ProcessIsNoOlderThanItsParent) {
  const auto self = process_age_s("self"), parent = process_age_s(std::to_string(::getppid()));
  ASSERT_TRUE(self && parent);
  EXPECT_GE(*self, 0);
  EXPECT_LT(*self, 3600);
  EXPECT_LE(*self, *parent);
  EXPECT_EQ(process_age_s("none"), std::nullopt);
}

TEST(System, WhatAProcessDidBeforeItsProgramIsNotItsStart) {
  EXPECT_EQ(process_start_s(4.0, 1), 4.0);
  EXPECT_EQ(process_start_s(1860.0, 1), 0) << "a job script that ends with exec";
  EXPECT_EQ(process_start_s(60.0, 1), 0);
  EXPECT_EQ(process_start_s(60.0, 4096), 60.0) << "a launcher takes its time for thousands";
  EXPECT_EQ(process_start_s(std::nullopt, 1), 0);
}

TEST(System, TheLauncherIsKnownWhereALoaderWasToldToStartIt) {
  testing::Tree tree;
  const std::string parent = "/" + std::to_string(::getppid()) + "/";
  const auto said = [&](const std::string& comm, std::string words, bool daemons) {
    std::replace(words.begin(), words.end(), ' ', '\0');
    tree.file(parent + "comm", comm + "\n");
    tree.file(parent + "cmdline", words);
    return launcher_parent(daemons, tree.root());
  };
  EXPECT_EQ(said("mpirun", "", false), "mpirun");
  EXPECT_EQ(said("bash", "bash mpirun", false), "");
  const std::string loader = "/lib64/ld-linux-x86-64.so.2 --library-path /b/lib/shared:/b/lib/rdma ";
  EXPECT_EQ(said("ld-linux-x86-64", loader + "/b/libexec/orterun --prefix /b -n 2 assay", false), "orterun");
  EXPECT_EQ(said("ld-linux-aarch6", loader + "/b/libexec/orted --hnp", true), "orted");
  EXPECT_EQ(said("ld64.so.2", loader + "/b/libexec/orted --hnp", false), "") << "a daemon is no launcher";
  EXPECT_EQ(said("ld-linux-x86-64", loader + "/b/libexec/ompi_info mpirun", false), "");
  EXPECT_EQ(said("ld-linux-x86-64", loader, false), "");
}

}  // namespace assay
