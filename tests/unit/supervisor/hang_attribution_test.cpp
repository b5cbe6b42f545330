// SPDX-License-Identifier: Apache-2.0
// Hang attribution over made waiting graphs.
#include <gmock/gmock.h>

#include "supervisor/hang_attribution.hpp"

namespace assay::supervisor {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

MissingRank at(int rank, Call call, int peer = no_peer, char state = 'R', Phase phase = Phase::running) {
  MissingRank s;
  s.rank = rank;
  s.at.phase = phase;
  s.at.call = call;
  s.at.peer = peer;
  s.at.process_state = state;
  s.at.idle_s = 30;
  return s;
}

std::vector<int> at_fault(const std::vector<MissingRank>& missing) {
  return attribute_hang(missing, 5).at_fault;
}

constexpr int sizes[] = {2, 3, 4, 64, 1000, 10000};

TEST(HangAttribution, WithoutAMissingRankNoneIsNamed) { EXPECT_THAT(at_fault({}), IsEmpty()); }

TEST(HangAttribution, UnreachableRanksAreBlamedFirst) {
  auto silent = at(2, Call::barrier);
  silent.heard = false;
  EXPECT_THAT(at_fault({at(0, Call::none), at(1, Call::barrier, no_peer, 'T'), silent}), ElementsAre(2));
}

TEST(HangAttribution, AStoppedProcessIsNamedInsideACallToo) {
  EXPECT_THAT(at_fault({at(0, Call::none), at(1, Call::all_reduce, no_peer, 'T')}), ElementsAre(1));
}

TEST(HangAttribution, BehindInPhase) {
  EXPECT_THAT(at_fault({at(0, Call::texts, no_peer, 'R', Phase::discovery),
                        at(3, Call::none, no_peer, 'S', Phase::mpi_init)}),
              ElementsAre(3));
}

TEST(HangAttribution, TheRankThatAllOthersWaitForIsNamed) {
  for (const int n : sizes) {
    std::vector<MissingRank> missing{at(0, Call::none)};
    for (int r = 1; r < n; ++r) missing.push_back(at(r, Call::receive, 0));
    EXPECT_THAT(at_fault(missing), ElementsAre(0)) << n;
    // All in the operation of a group but one, which computes.
    for (MissingRank& s : missing)
      if (s.rank > 0) s.at.call = Call::all_reduce, s.at.peer = no_peer;
    EXPECT_THAT(at_fault(missing), ElementsAre(0)) << n;
  }
}

TEST(HangAttribution, AChainOfWaitingRanksNamesItsEnd) {
  for (const int n : sizes) {
    std::vector<MissingRank> missing;
    for (int r = 0; r + 1 < n; ++r) missing.push_back(at(r, Call::receive, r + 1));
    missing.push_back(at(n - 1, Call::none));
    EXPECT_THAT(at_fault(missing), ElementsAre(n - 1)) << n;
    // The end waits in something of its own: no rank is at fault, and the link there is named.
    missing.back() = at(n - 1, Call::barrier);
    const HangAttribution open = attribute_hang(missing, 5);
    EXPECT_THAT(open.at_fault, IsEmpty());
    EXPECT_THAT(open.links, ElementsAre(Pair(n - 2, n - 1))) << n;
  }
}

TEST(HangAttribution, AChainToARankThatHasGoneOnNamesTheirLink) {
  const HangAttribution b = attribute_hang({at(0, Call::receive, 1), at(1, Call::wait, 7)}, 5);
  EXPECT_THAT(b.at_fault, IsEmpty());
  EXPECT_THAT(b.links, ElementsAre(Pair(1, 7)));
}

TEST(HangAttribution, ARingOfWaitingRanksNamesLinksAndNoRank) {
  for (const int n : sizes) {
    std::vector<MissingRank> missing;
    for (int r = 0; r < n; ++r) missing.push_back(at(r, Call::wait, (r + 1) % n));
    const HangAttribution b = attribute_hang(missing, 5);
    EXPECT_THAT(b.at_fault, IsEmpty());
    EXPECT_EQ(b.links.size(), n == 2 ? 1u : static_cast<std::size_t>(n)) << n;
    missing[static_cast<std::size_t>(n / 2)].at.process_state = 'T';
    EXPECT_THAT(at_fault(missing), ElementsAre(n / 2)) << n;
  }
}

TEST(HangAttribution, APairThatWaitsForEachOtherAndNotTheGroupBehindIt) {
  for (const int n : sizes) {
    std::vector<MissingRank> missing{at(0, Call::wait, 1), at(1, Call::receive, 0)};
    for (int r = 2; r < n; ++r)
      missing.push_back(r % 2 == 0 ? at(r, Call::barrier) : at(r, Call::receive, 0));
    const HangAttribution b = attribute_hang(missing, 5);
    EXPECT_THAT(b.at_fault, IsEmpty());
    EXPECT_THAT(b.links, ElementsAre(Pair(0, 1))) << n;
  }
}

TEST(HangAttribution, TwoPairsAreTwoLinks) {
  const HangAttribution b = attribute_hang(
      {at(0, Call::wait, 1), at(1, Call::wait, 0), at(2, Call::wait, 3), at(3, Call::wait, 2)}, 5);
  EXPECT_THAT(b.links, UnorderedElementsAre(Pair(0, 1), Pair(2, 3)));
}

TEST(HangAttribution, ARankWithProgressIsNotStuck) {
  auto working = at(2, Call::none);
  working.at.idle_s = 0.2;
  EXPECT_THAT(at_fault({at(0, Call::barrier), at(1, Call::none), working}), ElementsAre(1));
  EXPECT_THAT(at_fault({at(0, Call::barrier), working}), IsEmpty());
}

TEST(HangAttribution, WithoutEvidenceNoRankIsNamed) {
  for (const auto& missing : {std::vector{at(0, Call::barrier), at(1, Call::barrier)},
                              std::vector{at(4, Call::none, no_peer, 'S', Phase::mpi_init),
                                          at(5, Call::none, no_peer, 'S', Phase::mpi_init)}}) {
    const HangAttribution b = attribute_hang(missing, 5);
    EXPECT_THAT(b.at_fault, IsEmpty());
    EXPECT_THAT(b.links, IsEmpty());
  }
}

TEST(HangAttribution, WaitingForAWorkingRankIsNoHang) {
  EXPECT_FALSE(all_wait({at(0, Call::barrier), at(1, Call::none)}));
  EXPECT_TRUE(all_wait({at(0, Call::barrier), at(1, Call::none, no_peer, 'T')}));
}

}  // namespace
}  // namespace assay::supervisor
