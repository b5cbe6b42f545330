// SPDX-License-Identifier: Apache-2.0
// What the parts of a burn tell of wrong results.
#include <gtest/gtest.h>

#include <memory>
#include <utility>

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

}  // namespace
}  // namespace assay::burn
