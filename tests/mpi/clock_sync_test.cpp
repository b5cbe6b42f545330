// SPDX-License-Identifier: Apache-2.0
#include "transport/clock_sync.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "transport/forwarding_communicator.hpp"
#include "transport/mpi_detail.hpp"

namespace assay {
namespace {

TEST(ClockSync, RanksOfOneKernelNeedNoCorrection) {
  const auto comm = mpi::duplicate_world();
  const ClockOffset offset = estimate_clock_offset(*comm);
  EXPECT_EQ(offset.offset_s, 0);  // tests run on one machine
  EXPECT_EQ(offset.error_s, 0);
}

TEST(ClockSync, ClocksThatAreWrongAreFoundToBeSo) {
  const auto comm = mpi::duplicate_world();
  const double wrong_s = 100.0 * comm->rank();
  const ClockOffset offset = estimate_clock_offset(*comm, 20, false, [&](double t) { return t + wrong_s; });
  EXPECT_NEAR(offset.offset_s, -wrong_s, offset.error_s + 1e-9);
  EXPECT_LT(offset.error_s, 0.1);
  EXPECT_EQ(offset.error_s > 0, comm->rank() > 0);
}

TEST(ClockSync, TheExchangeFindsTheTrueOffsetWithinItsError) {
  const auto comm = mpi::duplicate_world();
  const ClockOffset offset = estimate_clock_offset(*comm, 20, true);
  if (comm->rank() == 0) {
    EXPECT_EQ(offset.error_s, 0);
  } else {
    EXPECT_GT(offset.error_s, 0);
    EXPECT_LT(offset.error_s, 0.1);
  }
  EXPECT_LE(std::abs(offset.offset_s), offset.error_s);  // the true offset is 0
}

class Counting final : public ForwardingCommunicator {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;
  void send(const void* data, std::size_t bytes, int peer, int tag) override {
    ++sends;
    inner_.send(data, bytes, peer, tag);
  }
  int sends = 0;
};

TEST(ClockSync, NoRankAnswersAllOthers) {
  const auto comm = mpi::duplicate_world();
  Counting counting(*comm);
  estimate_clock_offset(counting, 20, true);
  EXPECT_LE(counting.sends, 20 * std::bit_width(static_cast<unsigned>(comm->size() - 1)));
}

}  // namespace
}  // namespace assay
