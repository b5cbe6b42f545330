// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "guard/culprit.hpp"

namespace assay::guard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Suspect at(int rank, Call call, int peer = no_peer, char state = 'R', Phase phase = Phase::running) {
  Suspect s;
  s.rank = rank;
  s.at.phase = phase;
  s.at.call = call;
  s.at.peer = peer;
  s.at.process_state = state;
  return s;
}

TEST(Culprits, NobodyMissingNobodyGuilty) { EXPECT_THAT(culprits({}), IsEmpty()); }

TEST(Culprits, UnheardBeforeAll) {
  auto silent = at(2, Call::barrier);
  silent.heard = false;
  EXPECT_THAT(culprits({at(0, Call::none), at(1, Call::barrier, no_peer, 'T'), silent}), ElementsAre(2));
}

TEST(Culprits, StoppedEvenInsideACall) {
  EXPECT_THAT(culprits({at(0, Call::none), at(1, Call::all_reduce, no_peer, 'T')}), ElementsAre(1));
}

TEST(Culprits, BehindInPhase) {
  EXPECT_THAT(culprits({at(0, Call::texts, no_peer, 'R', Phase::discovery), at(3, Call::none, no_peer, 'S', Phase::mpi_init)}),
              ElementsAre(3));
}

TEST(Culprits, WhoComputesWhileOthersWait) {
  EXPECT_THAT(culprits({at(0, Call::receive, 2), at(1, Call::barrier), at(2, Call::none)}), ElementsAre(2));
}

TEST(Culprits, APairThatWaitsForEachOtherAndNotTheGroupBehindIt) {
  EXPECT_THAT(culprits({at(0, Call::barrier), at(1, Call::wait, 2), at(2, Call::receive, 1)}), ElementsAre(1, 2));
}

TEST(Culprits, AllWhenNothingTellsThemApart) {
  EXPECT_THAT(culprits({at(0, Call::barrier), at(1, Call::barrier)}), ElementsAre(0, 1));
  EXPECT_THAT(culprits({at(4, Call::none, no_peer, 'S', Phase::mpi_init), at(5, Call::none, no_peer, 'S', Phase::mpi_init)}),
              ElementsAre(4, 5));
}

}  // namespace
}  // namespace assay::guard
