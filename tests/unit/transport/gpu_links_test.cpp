// SPDX-License-Identifier: Apache-2.0
// What making a communicator of NCCL takes is no time of the case that needs it first.
#include "transport/gpu_links.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "base/clock.hpp"
#include "tests/unit/gemm_memory_fakes.hpp"

namespace assay {
namespace {

struct MadeCommunicator final : fakes::SelfCommunicator {
  explicit MadeCommunicator(double& until) : until_s(until) {}
  void give_up_at(double deadline_s) override { until_s = deadline_s; }
  double& until_s;
};

/// Its communicators are made in a fifth of a second.
class SlowTransports final : public GpuTransports {
 public:
  mutable std::vector<GpuSettings> made;
  mutable double until_s = 0;

  std::string nccl_version(std::string&) const override { return "2.0"; }
  std::unique_ptr<Communicator> make_nccl(Communicator&, Device&,
                                          const GpuSettings& settings) const override {
    made.push_back(settings);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    return std::make_unique<MadeCommunicator>(until_s);
  }
  std::unique_ptr<Communicator> make_staged(Communicator&, Device&, bool,
                                            supervisor::Heartbeat*) const override {
    return nullptr;
  }
  std::unique_ptr<PeerMemory> make_peer(Communicator&, Communicator&, Device&, CopyEngine,
                                        const GpuSettings&) const override {
    return nullptr;
  }
};

struct GpuLinksTest : ::testing::Test {
  fakes::SelfCommunicator world, node;
  fakes::HookedDevice device;
  SlowTransports transports;
  GpuLinks links{transports, device, world, node, nullptr, GpuDirect::off, nullptr};
};

TEST_F(GpuLinksTest, SettingUpHasItsOwnTimeAndTakesNoneOfTheCases) {
  links.nccl(GpuLinks::Scope::world, 1000);
  ASSERT_EQ(transports.made.size(), 1U);
  EXPECT_EQ(transports.made[0].deadline_s, 1000);
  EXPECT_GE(transports.made[0].set_up_s, 10);
  const double later_s = transports.until_s;
  EXPECT_GE(later_s, 1000.2);
  links.nccl(GpuLinks::Scope::world, 1000);
  EXPECT_EQ(transports.until_s, later_s) << "the next draw of the same case";
  links.nccl(GpuLinks::Scope::node, 1000);
  ASSERT_EQ(transports.made.size(), 2U);
  EXPECT_EQ(transports.made[1].deadline_s, later_s);
  EXPECT_GE(transports.until_s, later_s + 0.2);
}

TEST_F(GpuLinksTest, ACaseThatFindsItsCommunicatorHasItsOwnDeadline) {
  links.nccl(GpuLinks::Scope::world, 1000);
  links.nccl(GpuLinks::Scope::world, 2000);
  EXPECT_EQ(transports.made.size(), 1U);
  EXPECT_EQ(transports.until_s, 2000);
}

}  // namespace
}  // namespace assay
