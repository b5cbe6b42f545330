// SPDX-License-Identifier: Apache-2.0
#include "transport/faulty_communicator.hpp"

#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "transport/mpi_detail.hpp"

namespace assay {
namespace {

/// Loses what comes from one rank of the job.
class LosesFrom final : public MessageFaults {
 public:
  explicit LosesFrom(int source) : source_(source) {}
  std::vector<int> sources;
  bool lost(int source) override {
    sources.push_back(source);
    return source == source_;
  }
  double hold_back_s(int, double) override { return 0; }
  void arrived(void*, std::size_t) override {}

 private:
  int source_;
};

struct FaultyMpi : testing::Test {
  std::unique_ptr<Communicator> world = mpi::duplicate_world();
  int me = world->rank(), size = world->size();
  LosesFrom faults{size - 1};

  std::vector<int> everyone() const {
    std::vector<int> ranks(static_cast<std::size_t>(size));
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
  }
  /// Every rank of `comm` tells the next one its rank in the job; gives what arrived, -1 if nothing did.
  int ring(Communicator& comm) const {
    const int next = (comm.rank() + 1) % comm.size();
    const int previous = (comm.rank() + comm.size() - 1) % comm.size();
    int heard = -1;
    std::array<Request, 2> requests;
    comm.irecv(&heard, sizeof heard, previous, payload_tag, requests[0]);
    comm.isend(&me, sizeof me, next, payload_tag, requests[1]);
    comm.wait_all(requests);
    return heard;
  }
};

TEST_F(FaultyMpi, OnlyTheLostMessageIsMissing) {
  FaultyCommunicator faulty(*world, faults, everyone());
  const int previous = (me + size - 1) % size;
  EXPECT_EQ(ring(faulty), previous == size - 1 ? -1 : previous);
  EXPECT_EQ(faults.sources, std::vector<int>{previous});
}

TEST_F(FaultyMpi, AReorderedSubgroupUsesTheRanksOfTheJob) {
  FaultyCommunicator faulty(*world, faults, everyone());
  const auto reversed = faulty.split(0, size - me);
  ASSERT_EQ(reversed->rank(), size - 1 - me);
  const int previous = (me + 1) % size;
  EXPECT_EQ(ring(*reversed), previous == size - 1 ? -1 : previous);
  EXPECT_EQ(faults.sources, std::vector<int>{previous});
  const auto part_of_part = reversed->split(me % 2, me);
  faults.sources.clear();
  ring(*part_of_part);
  ASSERT_EQ(faults.sources.size(), 1u);
  EXPECT_EQ(faults.sources[0] % 2, me % 2);
}

TEST_F(FaultyMpi, CollectivesAndTextsPassUntouched) {
  FaultyCommunicator faulty(*world, faults, everyone());
  EXPECT_EQ(faulty.sum(1.0), size);
  EXPECT_EQ(faulty.broadcast_text(me == 0 ? "word" : "", 0), "word");
  EXPECT_EQ(faulty.all_gather_text(std::to_string(me)).back(), std::to_string(size - 1));
  EXPECT_TRUE(faults.sources.empty());
}

}  // namespace
}  // namespace assay
