// SPDX-License-Identifier: Apache-2.0
// Errors of a node are those of a case, also where they come between two files of a soak.
#include "run/case_counters.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace assay {
namespace {

/// A node whose only counter is of errors in memory.
class CaseCountersTest : public ::testing::Test {
 protected:
  CaseCountersTest() {
    std::filesystem::create_directories(controller_);
    count(7);
  }
  void count(int errors) const { std::ofstream(controller_ / "ce_count") << errors << '\n'; }
  CounterSet probe() const { return CounterSet::probe("n", temporary_.path().string()); }

  TemporaryFolder temporary_;
  std::filesystem::path controller_ = temporary_.path() / "sys/devices/system/edac/mc/mc0";
};

TEST_F(CaseCountersTest, AnErrorBeforeTheFirstCaseIsOfIt) {
  CaseCounters counters(probe());
  count(8);  // while devices are set up
  EXPECT_THAT(counters.before(), ::testing::ElementsAre(7));
  EXPECT_THAT(counters.after(), ::testing::ElementsAre(8));
}

TEST_F(CaseCountersTest, AnErrorBetweenTwoCasesIsOfTheSecond) {
  CaseCounters counters(probe());
  counters.before();
  counters.after();
  count(9);  // while a file is closed
  EXPECT_THAT(counters.before(), ::testing::ElementsAre(7));
  EXPECT_THAT(counters.after(), ::testing::ElementsAre(9));
  EXPECT_THAT(counters.before(), ::testing::ElementsAre(9)) << "it is told once";
}

TEST_F(CaseCountersTest, ACounterThatWasClearedBeginsAnew) {
  CaseCounters counters(probe());
  count(0);
  EXPECT_THAT(counters.before(), ::testing::ElementsAre(0));
}

}  // namespace
}  // namespace assay
