// SPDX-License-Identifier: Apache-2.0
// What is told of the NCCL that is found, without a communicator.
#include <gtest/gtest.h>

#include "transport/cuda/nccl_communicator.hpp"
#include "transport/gpu_transports.hpp"

namespace assay {
namespace {

TEST(NcclLibrary, IsFoundOrSaysWhyNot) {
  std::string why;
  const std::string version = gpu_transports("cuda")->nccl_version(why);
  EXPECT_NE(version.empty(), why.empty()) << version << why;
  if (!why.empty()) GTEST_SKIP() << why;
  EXPECT_EQ(version.rfind("2.", 0), 0u) << version;
}

TEST(NcclSettings, ReductionInSwitchesIsTagged) {
  EXPECT_EQ(cuda::nvls_state(nullptr, nullptr, 9), "unknown");
  EXPECT_EQ(cuda::nvls_state(nullptr, nullptr, 8), "disabled");
  EXPECT_EQ(cuda::nvls_state("0", nullptr, 9), "disabled");
  EXPECT_EQ(cuda::nvls_state("1", nullptr, 10), "enabled");
  EXPECT_EQ(cuda::nvls_state(nullptr, "Ring,Tree", 9), "disabled");
  EXPECT_EQ(cuda::nvls_state(nullptr, "Ring,NVLSTree", 9), "unknown");
  EXPECT_EQ(cuda::nvls_state(nullptr, "^NVLS,NVLSTree", 9), "disabled");
  EXPECT_EQ(cuda::nvls_state(nullptr, "^Ring", 9), "unknown");
  EXPECT_EQ(cuda::nccl_version_text(22809), "2.28.9");
  EXPECT_EQ(cuda::nccl_version_text(2804), "2.8.4");
}

}  // namespace
}  // namespace assay
