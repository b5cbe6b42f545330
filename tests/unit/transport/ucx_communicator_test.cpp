// SPDX-License-Identifier: Apache-2.0
// One rank that talks to itself over UCX, and to one that is not there.
#include "transport/ucx_communicator.hpp"

#include <gmock/gmock.h>

#include <array>

#include "tests/unit/gemm_memory_fakes.hpp"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Ucx : ::testing::Test {
  void SetUp() override {
    if (UcxCommunicator::version().empty()) GTEST_SKIP() << "this build has no UCX";
    comm = UcxCommunicator::make(world, world, {"", "self"});
  }
  fakes::SelfCommunicator world;
  std::unique_ptr<UcxCommunicator> comm;
};

TEST_F(Ucx, APartnerThatAnswersIsNotSilent) {
  const std::array<int, 1> peers{0};
  EXPECT_EQ(comm->connect(peers), "");
  EXPECT_THAT(comm->silent(peers, 30), IsEmpty());
}

/// The others of the group wait until this rank agrees with them on how it went.
TEST_F(Ucx, AnErrorOfAPartnerIsToldAndNotThrown) {
  const std::array<int, 2> peers{5, 0};
  EXPECT_THAT(comm->connect(peers), HasSubstr("rank 5"));
  EXPECT_THAT(comm->silent(peers, 30), ElementsAre(5));
}

}  // namespace
}  // namespace assay
