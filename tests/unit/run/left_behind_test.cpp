// SPDX-License-Identifier: Apache-2.0
// Who is left out after a launch of which only a partial directory is left.
#include "run/left_behind.hpp"

#include <gmock/gmock.h>

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Node a with ranks 0 and 1, node b with rank 2.
class LeftBehind : public ::testing::Test {
 protected:
  LeftBehind() {
    const auto add = [this](const char* kind, const char* name, int parent, int rank) {
      results::Entity e;
      e.kind = kind;
      e.name = e.id = name;
      e.parent = parent;
      e.rank = rank;
      results.entities.push_back(e);
    };
    add("node", "a", -1, -1), add("device", "a/0", 0, 0), add("device", "a/1", 0, 1);
    add("node", "b", -1, -1), add("device", "b/0", 3, 2);
  }
  void event(const char* kind, int entity) { results.events.push_back({1, entity, kind, "text"}); }
  std::optional<results::EventRow> take(bool closing = false) {
    attempt.partial = true;
    return take_left_behind(attempt, results, "a", closing);
  }

  results::Results results;
  Attempt attempt;
};

TEST_F(LeftBehind, ACollectorThatIsGoneWithoutAWordIsLost) {
  event("xid", 1);
  const auto loss = take();
  ASSERT_TRUE(loss);
  EXPECT_EQ(loss->kind, "lost");
  EXPECT_EQ(loss->entity, 1);
  EXPECT_THAT(attempt.lost, ElementsAre("a"));
  EXPECT_FALSE(attempt.told);
}

TEST_F(LeftBehind, ACollectorThatWasKilledWhileItEndedTheRunAfterALossIsNot) {
  event("lost", 4);
  event("aborted", -1);
  EXPECT_FALSE(take());
  EXPECT_THAT(attempt.lost, ElementsAre("b"));
  EXPECT_FALSE(attempt.told);
}

TEST_F(LeftBehind, AFileThatCouldNotBeMadeBlamesNobody) {
  EXPECT_FALSE(take(true));
  EXPECT_THAT(attempt.lost, IsEmpty());
  EXPECT_TRUE(attempt.told);
}

TEST_F(LeftBehind, ARunThatWasAskedToEndBlamesNobody) {
  event("aborted", -1);
  EXPECT_FALSE(take());
  EXPECT_THAT(attempt.lost, IsEmpty());
  EXPECT_TRUE(attempt.told);
}

TEST_F(LeftBehind, LossesOfALaunchBeforeAreNotThoseOfThisOne) {
  event("lost", 4);
  event("aborted", -1);
  event("resumed", -1);
  EXPECT_TRUE(take());
  EXPECT_THAT(attempt.lost, ElementsAre("a"));
}

}  // namespace
}  // namespace assay
