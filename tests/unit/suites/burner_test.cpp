// SPDX-License-Identifier: Apache-2.0
// What the parts of a burn tell of wrong results, and how large their work is.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "suites/burn/burn_plan.hpp"
#include "suites/burn/burn_suite.hpp"
#include "suites/burn/burner.hpp"
#include "tests/unit/gemm_memory_fakes.hpp"

namespace assay::burn {
namespace {

TEST(MemoryBurner, AWrongWordIsOneOfTheMemory) {
  constexpr std::size_t bytes = 4 << 20;
  const BurnSuite suite;
  fakes::Bench bench(fakes::config_of(suite, Level::quick));
  bench.with(Case{}, [&](Context& context) {
    BurnRecorder recorder(context, context.device_entity);
    auto device = std::make_unique<fakes::HookedDevice>();
    fakes::HookedDevice& hooked = *device;
    hooked.reserve(bytes);
    auto* words = reinterpret_cast<std::uint64_t*>(hooked.arena().data());
    MemoryBurner burner(std::move(device), words, bytes / sizeof(std::uint64_t), RandomStream(7, "burner"),
                        0.05, 10, recorder);
    burner.prepare();
    kernels::ErrorRecord wrong{77, 1, 3, 1};
    wrong.sm = 6, wrong.warp = 3, wrong.lane = 17;
    hooked.wrong_word = wrong;
    burner.round();
    EXPECT_EQ(recorder.hand_over(), 1u);
  });
  ASSERT_EQ(bench.record.records_.size(), 1u);
  EXPECT_EQ(bench.record.records_[0].index, 77u);
  EXPECT_EQ(bench.record.records_[0].sm, -1) << "whose index is no address in this case";
  ASSERT_EQ(bench.record.events_.size(), 1u);
  EXPECT_EQ(bench.record.events_[0].text,
            "burn: 1 wrong words, the first at byte 616, read by SM 6 warp 3 lane 17");
}

/// One of two ranks on a network that sums 8 MB in a second.
class SlowLinks final : public fakes::SelfCommunicator {
 public:
  std::size_t largest = 0;
  int size() const noexcept override { return 2; }
  void all_reduce(const void* in, void* out, std::size_t count, DataType type, ReduceOp op) override {
    SelfCommunicator::all_reduce(in, out, count, type, op);
    const std::size_t bytes = count * size_of(type);
    largest = std::max(largest, bytes);
    std::this_thread::sleep_for(std::chrono::duration<double>(static_cast<double>(bytes) / 8e6));
  }
};

/// 4 MiB would take half a second, ten times a round of a burn of a second.
TEST(MixedBurn, OnASlowNetworkLessIsSummedAtATime) {
  BurnSuite suite;
  Config config = fakes::config_of(suite, Level::soak, {{"burn.parts", {"links"}}, {"burn.duration", {"1"}}});
  const Topology topology = fakes::cluster({1, 2, 1, 2});
  const EntityTable entities(topology);
  const auto cases = suite.plan({config, topology, std::uint64_t{1} << 30, 1});
  const Case* c = fakes::find(cases, "mixed-together");
  ASSERT_NE(c, nullptr);
  const std::size_t planned = mixed_of(*c).links_bytes;
  EXPECT_EQ(planned, std::size_t{4} << 20);
  fakes::HookedDevice device;
  SlowLinks world;
  CaseRecord record;
  Context context{{config, topology, entities, device, world, world, nullptr},
                  case_stream(7, c->path()),
                  now_s(),
                  now_s() + 60,
                  record,
                  entities.device_of_rank(0)};
  suite.run(*c, context);
  EXPECT_LT(world.largest, planned / 4);
  EXPECT_LE(record.parameters_.at("summed_bytes").get<std::size_t>(), world.largest);
  EXPECT_TRUE(std::ranges::any_of(record.events_, [](const auto& e) { return e.kind == "burn-cut-short"; }));
}

}  // namespace
}  // namespace assay::burn
