// SPDX-License-Identifier: Apache-2.0
// Every rank runs the same tests in the same order; the run fails if any rank has a failure.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdio>

#include "transport/mpi_communicator.hpp"

namespace {

constexpr int nothing_but_skips = 77;  ///< as ctest knows it

/// A failed ASSERT on one rank leaves the others waiting for it, so a rank that fails says so and ends the
/// job.
class EndOnFailure final : public testing::EmptyTestEventListener {
 public:
  explicit EndOnFailure(int rank) : rank_(rank) {}

 private:
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (rank_ == 0 || !result.failed()) return;  // rank 0 has the ordinary printer
    std::printf("rank %d: %s:%d: %s\n", rank_, result.file_name(), result.line_number(), result.message());
  }
  void OnTestEnd(const testing::TestInfo& info) override {
    if (!info.result()->Failed()) return;
    std::fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  int rank_;
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  assay::MpiSession session(&argc, &argv);
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  if (session.world().rank() != 0) delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new EndOnFailure(session.world().rank()));
  const int mine = RUN_ALL_TESTS();
  const auto* tests = testing::UnitTest::GetInstance();
  const auto ran = static_cast<double>(tests->successful_test_count());
  if (session.world().max(mine) != 0 || session.world().min(ran) != session.world().max(ran)) return 1;
  if (ran > 0) return 0;
  return tests->skipped_test_count() > 0 ? nothing_but_skips : 1;
}
