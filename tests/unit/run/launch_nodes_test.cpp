// SPDX-License-Identifier: Apache-2.0
// Which nodes a launch has, and which of them answer, with a shell script as the launcher.
#include "run/launch_nodes.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/clock.hpp"
#include "tests/support/temporary_folder.hpp"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class LaunchNodes : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* variable :
         {"SLURM_JOB_NODELIST", "PBS_NODEFILE", "LSB_DJOB_HOSTFILE", "OMPI_MCA_orte_default_hostfile"})
      unsetenv(variable);
  }
  void TearDown() override {
    unsetenv("SLURM_JOB_NODELIST");
    unsetenv("PBS_NODEFILE");
  }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder + "/" + name) << text;
    return folder + "/" + name;
  }
  /// A launcher that is told `--without=...`: fails where a node called bad... is among `nodes` and not left
  /// out, and says nothing where one is called slow...
  std::string launcher(const std::set<std::string>& nodes) const {
    std::string names;
    for (const std::string& node : nodes) names += " " + node;
    return "sh " +
           write("launcher.sh",
                 "without=,${1#*=},; shift; echo x >>" + folder + "/calls\nfor node in" + names +
                     "; do case \"$without\" in *,$node,*) continue ;; esac\n"
                     "case $node in bad*) printf '***\\n%s: no route\\nmore\\n' $node >&2; exit 7 ;; "
                     "slow*) sleep 60 ;; esac\ndone\nexec \"$@\"\n") +
           " --without={exclude}";
  }
  std::size_t calls() const {
    std::ifstream file(folder + "/calls");
    return static_cast<std::size_t>(
        std::count(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>(), '\n'));
  }
  TemporaryFolder temporary;
  std::string folder = temporary.path();
};

TEST_F(LaunchNodes, AreThoseOfTheLauncherElseOfTheJob) {
  EXPECT_THAT(launch_nodes({"mpirun", "-n", "2"}), IsEmpty());
  const std::string file = write("hosts", "# nodes\nn1 slots=2\n\nn2\nn2\n");
  setenv("PBS_NODEFILE", file.c_str(), 1);
  EXPECT_THAT(launch_nodes({"mpirun"}), ElementsAre("n1", "n2"));
  setenv("SLURM_JOB_NODELIST", "n[1-3],gpu7", 1);
  EXPECT_THAT(launch_nodes({"srun", "-N", "4"}), ElementsAre("n1", "n2", "n3", "gpu7"));
  EXPECT_THAT(launch_nodes({"srun", "--nodelist=n[2-3]"}), ElementsAre("n2", "n3"));
  EXPECT_THAT(launch_nodes({"mpirun", "--hostfile", file}), ElementsAre("n1", "n2"));
  EXPECT_THAT(launch_nodes({"bash", "launch.sh", "start", "mpirun", "-H", "a:4,b:4,a", "--"}),
              ElementsAre("a", "b"));
  setenv("SLURM_JOB_NODELIST", "n[1-", 1);
  EXPECT_THAT(launch_nodes({"srun"}), ElementsAre("n1", "n2"));
}

TEST_F(LaunchNodes, ThatDoNotAnswerAreNamedWithTheReason) {
  Signals signals;
  const std::set<std::string> nodes{"bad1", "good1", "good2", "slow1"};
  const double begin = now_s();
  EXPECT_THAT(
      silent_nodes(launcher(nodes), {"true"}, nodes, {}, 1, signals),
      ElementsAre(Pair("bad1", "exit code 7: bad1: no route"), Pair("slow1", "no answer within 1 s")));
  EXPECT_LT(now_s() - begin, 30) << "what does not answer is ended";
  EXPECT_THAT(silent_nodes(launcher(nodes), {"true"}, {"good1", "good2"}, {"bad1", "slow1"}, 10, signals),
              IsEmpty())
      << "what was left out before stays out";
  EXPECT_EQ(silent_nodes(launcher(nodes), {"false"}, nodes, {}, 1, signals).size(), 4u);
}

TEST_F(LaunchNodes, ThatLaunchersDisturbedAreAskedAgain) {
  Signals signals;
  const std::string script =
      write("once", "[ -e " + folder + "/again ] || { touch " + folder + "/again; exit 1; }\n");
  EXPECT_THAT(silent_nodes(launcher({"good1", "good2"}), {"sh", script}, {"good1", "good2"}, {}, 10, signals),
              IsEmpty());
}

TEST_F(LaunchNodes, OfManyAreAskedInGroups) {
  Signals signals;
  std::set<std::string> nodes{"bad1"};
  for (int i = 0; i < 640; ++i) nodes.insert("n" + std::to_string(i));
  EXPECT_THAT(silent_nodes(launcher(nodes), {"true"}, nodes, {}, 20, signals),
              ElementsAre(Pair("bad1", "exit code 7: bad1: no route")));
  EXPECT_LT(calls(), 100u);
}

TEST_F(LaunchNodes, OfWhichNoGroupAnswersInTimeAreNotAskedOneByOne) {
  Signals signals;
  std::set<std::string> nodes{"slow1"};
  for (int i = 0; i < 640; ++i) nodes.insert("n" + std::to_string(i));
  const std::string sleeps = write("sleeps.sh", "echo x >>" + folder + "/calls; sleep 60\n");
  const double begin = now_s();
  const auto silent = silent_nodes("sh " + sleeps + " {exclude}", {"true"}, nodes, {}, 0.5, signals);
  EXPECT_EQ(silent.size(), nodes.size());
  EXPECT_THAT(silent, ::testing::Contains(Pair("n639", "no answer within 0 s")));
  EXPECT_LT(calls(), 130u);
  EXPECT_LT(now_s() - begin, 10);
}

TEST_F(LaunchNodes, AreAskedNoMoreWhenTheLaunchHasAnotherEnd) {
  Signals signals;
  std::set<std::string> nodes;
  for (int i = 0; i < 100; ++i) nodes.insert("slow" + std::to_string(i));
  const double begin = now_s();
  silent_nodes(launcher(nodes), {"true"}, nodes, {}, 50, signals, [&] { return now_s() - begin > 0.3; });
  EXPECT_LT(now_s() - begin, 20);
}

TEST_F(LaunchNodes, CanBeAskedUntilTheLauncherHasEnded) {
  Signals signals;
  bool ended_meanwhile = false;
  const auto overdue = [&](const std::function<bool()>& ended) -> std::string {
    for (const double begin = now_s(); !ended() && now_s() - begin < 20; usleep(10'000)) {
    }
    ended_meanwhile = ended();
    return "";
  };
  EXPECT_EQ(execute({"sh", "-c", "sleep 1.5; exit 7"}, signals, overdue).code, 7);
  EXPECT_TRUE(ended_meanwhile);
}

}  // namespace
}  // namespace assay
