// SPDX-License-Identifier: Apache-2.0
#include "telemetry/core_share.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/topology_tree.hpp"

namespace assay {
namespace {

TEST(CoreShare, IsThatOfTheMostDisturbedBusyThread) {
  Tree tree;
  const auto thread = [&](int id, double ran_s, double waited_s) {
    tree.file("/self/task/" + std::to_string(id) + "/schedstat",
              std::to_string(static_cast<long>(1e9 * ran_s)) + " " +
                  std::to_string(static_cast<long>(1e9 * waited_s)) + " 7");
  };
  for (const int id : {10, 11, 12}) thread(id, 5, 3);
  const CoreShare shares(tree.root() + "/self");
  EXPECT_TRUE(std::isnan(shares.share())) << "no time passed";
  thread(10, 6, 3);
  thread(11, 5.6, 3.4);
  thread(12, 5.01, 3.2);  // hardly ever ready: it holds up nobody
  EXPECT_DOUBLE_EQ(shares.share(), 0.6);
  thread(13, 0.1, 0.9);  // started since
  EXPECT_DOUBLE_EQ(shares.share(), 0.1);
  EXPECT_TRUE(std::isnan(CoreShare(tree.root() + "/nobody").share()));
}

TEST(CoreShare, OtherProcessesAreNamedWhereTheyRun) {
  Tree tree;
  const auto process = [&](const std::string& id, const std::string& name, long ticks, char state, int cpu) {
    std::string stat = id + " (" + name + ") " + state + " 1";
    for (int field = 5; field <= 39; ++field)
      stat += " " + std::to_string(field == 14 ? ticks : field == 39 ? cpu : 0);
    tree.file("/" + id + "/comm", name).file("/" + id + "/stat", stat);
    tree.file("/" + id + "/task/" + id + "/stat", stat);
  };
  tree.file("/self/comm", "assay");
  const auto wait = [&] {
    process("10", "assay", 90, 'R', 2);    // another rank
    process("11", "make", 40, 'R', 2);     // the one
    process("12", "cc1plus", 80, 'R', 3);  // on another core
    process("13", "sshd", 50, 'S', 2);     // sleeps by now
    process("14", "gzip", 7, 'R', 2);
  };
  for (const char* id : {"10", "11", "12", "13", "14"}) process(id, "?", 0, 'R', 2);
  EXPECT_EQ(busiest_other(wait, {2, 4}, tree.root()), "make (pid 11)");
  EXPECT_EQ(busiest_other([] {}, {2, 4}, tree.root()), "") << "no time passed";
}

}  // namespace
}  // namespace assay
