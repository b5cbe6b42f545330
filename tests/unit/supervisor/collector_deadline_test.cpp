// SPDX-License-Identifier: Apache-2.0
// The time limit of the whole run: whether a rank is at fault for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "collector_rig.hpp"

namespace assay::supervisor {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(CollectorTest, TheWholeRunHasADeadline) {
  controller.cases = 100;
  begin();
  for (int i = 0; i < 12; ++i) {
    pass(9, {{0, running(i, Call::none)}});  // the last reports of the others are of before
    record(i, {0, 1, 2, 3});
  }
  EXPECT_THAT(controller.losses, IsEmpty());
  EXPECT_EQ(controller.why, "did not end within the run's time limit of 100 s");
}

TEST_F(CollectorTest, ARankWithoutProgressBeforeTheRunsDeadlineIsAtFault) {
  controller.cases = 100;
  begin();
  const std::map<int, Snapshot> at{{2, running(12, Call::none)},
                                   {0, running(12, Call::barrier)},
                                   {1, running(12, Call::barrier)},
                                   {3, running(12, Call::barrier)}};
  for (int i = 0; i < 11; ++i) {
    pass(i == 0 ? 5 : 8, at);
    record(i, {0, 1, 2, 3});
  }
  pass(8, at);
  record(11, {0, 1, 2, 3});
  pass(10, at);  // from 93 s on, of 10 s that the case may take, with time to read the stack
  ASSERT_EQ(controller.losses.size(), 1u);
  EXPECT_THAT(controller.losses[0], HasSubstr("rank 2 on node01 did not end within the run's time limit"));
}

TEST_F(CollectorTest, ARunBeyondItsDeadlineThatMovesOnIsNoHang) {
  controller.cases = 100;
  begin();
  std::map<int, Snapshot> at;
  for (int r = 0; r < 4; ++r) at[r] = running(0, r == 3 ? Call::none : Call::barrier);
  pass(110, at, {}, {0, 1, 2, 3});
  EXPECT_THAT(controller.losses, IsEmpty());
  EXPECT_THAT(controller.why, HasSubstr("100 s"));
}

/// A case that all ranks run, of 10 s, and ranks without progress for 8 s hang.
class CollectorSetUp : public CollectorTest {
 protected:
  void begin_case() {
    begin();
    record(0, {0, 1, 2, 3});
    record(1, {0, 1, 2, 3});
  }
  std::map<int, Snapshot> setting_up() {
    std::map<int, Snapshot> at;
    for (int r = 0; r < 4; ++r) at[r] = running(2, r == 0 ? Call::texts : Call::set_up);
    return at;
  }
};

TEST_F(CollectorSetUp, ACommunicatorThatTakesLongToMakeIsNoHang) {
  begin_case();
  pass(19, setting_up());
  record(2, {0, 1, 2, 3});
  EXPECT_THAT(controller.losses, IsEmpty());
  EXPECT_EQ(controller.why, "");
}

TEST_F(CollectorSetUp, ACommunicatorThatIsNeverMadeIs) {
  begin_case();
  pass(21, setting_up());
  ASSERT_FALSE(controller.losses.empty());
  EXPECT_THAT(controller.losses[0], HasSubstr("stuck: case2: 4 ranks made no progress for 2"));
}

TEST_F(CollectorSetUp, ARankForWhichTheOthersWaitInVainIsNamed) {
  begin_case();
  auto at = setting_up();
  at[2] = running(2, Call::none);
  pass(13, at);
  ASSERT_FALSE(controller.losses.empty());
  EXPECT_THAT(controller.losses[0], HasSubstr("hang: rank 2 on node01 did not end case2 in time"));
}

}  // namespace
}  // namespace assay::supervisor
