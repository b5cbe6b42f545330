// SPDX-License-Identifier: Apache-2.0
#include "transport/clock_sync.hpp"

#include <gtest/gtest.h>

#include <cmath>

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

}  // namespace
}  // namespace assay
