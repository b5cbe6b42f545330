// SPDX-License-Identifier: Apache-2.0
// Bandwidth of a device that is far slower than planned.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "suites/memory/layout.hpp"
#include "suites/memory/memory_suite.hpp"
#include "suites/memory/stream_data.hpp"
#include "tests/unit/gemm_memory_fakes.hpp"

namespace assay {
namespace {

using namespace fakes;
using kernels::StreamOp;

TEST(StreamData, ArraysAreFilledInPartsThatAreProgress) {
  HookedDevice device;
  std::size_t largest = 0, parts = 0, filled = 0;
  device.after_stream = [&](StreamOp, double*, std::size_t count) {
    largest = std::max(largest, count);
    ++filled;
  };
  constexpr std::size_t count = 400 * memory::period;
  memory::StreamData data(device, StreamOp::read, count, 7, {1e9, [&](double) { ++parts; }});
  EXPECT_LE(largest * sizeof(double), 64u << 20);
  EXPECT_GT(parts, filled) << "what the arrays must hold is computed in parts, too";
  EXPECT_EQ(data.count(), count);
}

TEST(StreamData, ADeviceFarTooSlowHasShorterArrays) {
  HookedDevice device;
  device.after_stream = [](StreamOp, double*, std::size_t count) {
    std::this_thread::sleep_for(std::chrono::milliseconds(count / memory::period));
  };
  constexpr std::size_t planned = 64 * memory::period;
  memory::StreamData data(device, StreamOp::triad, planned, 7, {0.01, {}});
  device.after_stream = nullptr;
  EXPECT_GE(data.count(), memory::period);
  EXPECT_LT(data.count(), planned / 2);
  data.run(3);
  EXPECT_EQ(data.result().size(), data.count());
  EXPECT_EQ(data.check().count, 0u);
  data.cut(memory::period - 8);
  data.run(2);
  EXPECT_EQ(data.result().size(), memory::period - 8);
  EXPECT_EQ(data.check().count, 0u);
}

TEST(MemoryRun, ADeviceFarTooSlowEndsWithShorterArrays) {
  supervisor::Heartbeat heartbeat;
  MemorySuite suite;
  Bench b(config_of(suite, Level::smoke));
  b.device.after_stream = [](StreamOp op, double*, std::size_t) {
    if (op == StreamOp::copy) std::this_thread::sleep_for(std::chrono::milliseconds(800));
  };
  Case c;
  c.suite = "memory";
  c.operation = "stream";
  c.name = "read-alone";
  c.seconds = 0.05;
  c.parameters = {{"mode", "alone"}, {"operation", "read"}, {"elements", 40 * memory::period}, {"cached", 0}};
  b.with(c, [&](Context& context) {
    context.heartbeat = &heartbeat;
    suite.run(c, context);
  });
  EXPECT_GE(heartbeat.iteration, 4u) << "three parts and a sample";
  EXPECT_EQ(b.record.state_, results::CaseState::incomplete);
  EXPECT_TRUE(b.record.reason_.starts_with("cut short: arrays of ")) << b.record.reason_;
  ASSERT_EQ(b.record.events_.size(), 1u);
  EXPECT_EQ(b.record.events_[0].kind, "memory-cut-short");
  ASSERT_EQ(b.record.rows_.size(), 1u);
  EXPECT_EQ(b.record.rows_[0].integers.at("elements"), std::vector<std::uint64_t>{memory::period});
}

}  // namespace
}  // namespace assay
