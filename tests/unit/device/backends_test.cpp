// SPDX-License-Identifier: Apache-2.0
// Two kinds of GPUs in one program: the list that CMake makes, and which of them a launch takes.
#include <gmock/gmock.h>

#include "device/backend.hpp"
#include "topology/gpu_place.hpp"
#include "transport/gpu_transports.hpp"

namespace assay {
namespace {

using ::testing::ElementsAre;

TEST(Backends, TheListHasBothInTheOrderOfCMake) {
  std::vector<std::string> names, transports;
  for (const DeviceBackend* backend : device_backends()) names.emplace_back(backend->name());
  for (const auto& info : gpu_transport_infos()) transports.push_back(info.name);
  EXPECT_THAT(names, ElementsAre("cuda", "sample"));
  EXPECT_THAT(transports, ElementsAre("nccl", "cuda", "sample"));
  EXPECT_EQ(gpu_transports("sample"), nullptr);
  EXPECT_EQ(gpu_transports("host"), nullptr);
}

TEST(Backends, TheSecondIsOpenedLikeTheFirst) {
  const DeviceBackend& sample = *device_backends().at(1);
  std::string why;
  const auto gpus = sample.visible(why);
  ASSERT_EQ(gpus.size(), 1u);
  EXPECT_NE(sample.make_device(gpus[0].uuid), nullptr);
  const auto choice = choose_devices({"a"}, {{gpus[0].uuid}}, {"sample", false, std::string(sample.name())});
  EXPECT_EQ(choice.kind, "sample");
  EXPECT_TRUE(choice.on_gpus());
}

TEST(Backends, ALaunchTakesTheFirstThatAnyRankSeesAGpuOf) {
  EXPECT_EQ(agreed_backend({{false, true}, {false, false}}), 1u);
  EXPECT_EQ(agreed_backend({{false, true}, {true, false}}), 0u);
  EXPECT_EQ(agreed_backend({{false, false}}), 0u);
  EXPECT_EQ(agreed_backend({{}}), 0u);
}

}  // namespace
}  // namespace assay
