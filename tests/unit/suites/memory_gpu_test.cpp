// SPDX-License-Identifier: Apache-2.0
// What the memory suite does on GPUs alone: memory inside the processor, and copies.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "device/memory_ops.hpp"
#include "measure/statistics.hpp"
#include "suites/memory/layout.hpp"
#include "suites/memory/memory_suite.hpp"
#include "suites/memory/stream_data.hpp"
#include "tests/unit/gemm_memory_fakes.hpp"

namespace assay {
namespace {

using namespace fakes;

MemorySuite& memory_suite() {
  static MemorySuite it;
  return it;
}
Bench gpu_bench() { return Bench(config_of(memory_suite(), Level::smoke)); }

/// A GPU's memory, made of the host's.
class FakeOps final : public MemoryOps {
 public:
  OnChipResult result{4096, 8, {0, 1, 2, 3, 4, 5, 6, 7}, 0, {}};
  std::function<void(void* to, std::size_t bytes)> after_copy;
  std::set<std::pair<CopyWay, CopyBy>> asked;

  OnChipResult on_chip(OnChip, std::uint64_t) override { return result; }
  void* host_buffer(int, std::size_t bytes) override {
    host_.resize(bytes);
    return host_.data();
  }
  void start_copy(CopyWay way, CopyBy by, void* to, const void* from, std::size_t bytes) override {
    asked.emplace(way, by);
    std::memcpy(to, from, bytes);
    if (after_copy) after_copy(to, bytes);
  }
  std::string host_buffer_way() const override { return "bound"; }
  void finish_copies() override {}

 private:
  std::vector<std::byte> host_;
};

Case gpu_case(const char* kind, const char* name) {
  Case c;
  c.suite = "memory";
  c.operation = kind;
  c.name = std::string(kind) + "-" + name;
  c.seconds = 0.02;
  c.parameters = {{"mode", "together"}, {kind, name}, {"numa", 0}, {"bytes", 1 << 16}};
  if (std::string(name) == "local") c.parameters["pieces"] = 3;
  return c;
}

TEST(GpuMemoryRun, OnChipTestsNeedEveryMultiprocessor) {
  FakeOps ops;
  Bench good = gpu_bench();
  good.device.ops = &ops;
  good.run(memory_suite(), gpu_case("onchip", "l1"));
  EXPECT_EQ(good.record.state_, results::CaseState::pass) << good.record.reason_;
  EXPECT_EQ(good.record.rows_.at(0).values.at("coverage"), std::vector<double>{1});
  EXPECT_EQ(good.record.rows_.at(0).integers.at("visited").at(0), 0xffu);
  ops.result.visited.pop_back();
  Bench short_of_one = gpu_bench();
  short_of_one.device.ops = &ops;
  EXPECT_THROW(short_of_one.run(memory_suite(), gpu_case("onchip", "shared")), Error);
  EXPECT_THROW(gpu_bench().run(memory_suite(), gpu_case("onchip", "l2")), Error) << "a device without";
}

TEST(GpuMemoryRun, WrongOnChipWordsAreToldWithTheirPlace) {
  FakeOps ops;
  ops.result.errors = 5;
  kernels::ErrorRecord record{77, 1, 3, 1};
  record.sm = 6;
  ops.result.first = {record};
  Bench b = gpu_bench();
  b.device.ops = &ops;
  b.run(memory_suite(), gpu_case("onchip", "l2"));
  EXPECT_EQ(b.record.state_, results::CaseState::fail);
  EXPECT_EQ(b.record.miscompares() % 5, 0u);
  ASSERT_FALSE(b.record.events_.empty());
  EXPECT_EQ(b.record.events_[0].kind, "memory-fault");
  EXPECT_NE(b.record.events_[0].text.find("SM 6"), std::string::npos);
  EXPECT_EQ(b.record.records_.at(0).sm, 6);
  EXPECT_EQ(CaseRecord::deserialize(b.record.serialize()).records_.at(0).sm, 6) << "on its way between ranks";
  EXPECT_EQ(b.record.records_.at(0).lane, -1);
}

TEST(GpuMemoryRun, CopiesAreCheckedOnBothEnds) {
  using Asked = std::set<std::pair<CopyWay, CopyBy>>;
  const Asked down{{CopyWay::to_device, CopyBy::engine}}, up{{CopyWay::to_host, CopyBy::engine}};
  const std::map<std::string, Asked> asked = {{"h2d", down},
                                              {"d2h", up},
                                              {"hd-both", {*down.begin(), *up.begin()}},
                                              {"h2d-sm", {{CopyWay::to_device, CopyBy::threads}}},
                                              {"d2h-sm", {{CopyWay::to_host, CopyBy::threads}}},
                                              {"local", {{CopyWay::inside, CopyBy::engine}}}};
  for (const auto& [name, wanted] : asked) {
    const char* way = name.c_str();
    FakeOps ops;
    Bench b = gpu_bench();
    b.device.ops = &ops;
    b.run(memory_suite(), gpu_case("copy", way));
    EXPECT_EQ(b.record.state_, results::CaseState::pass) << way << ": " << b.record.reason_;
    for (const double v : b.record.rows_.at(0).values.at("bandwidth")) EXPECT_GT(v, 0);
    EXPECT_EQ(ops.asked, wanted) << way;
    int copies = 0;
    ops.after_copy = [&](void* to, std::size_t bytes) {
      if (++copies >= 3) static_cast<unsigned char*>(to)[bytes - 100] ^= 4;
    };
    Bench bad = gpu_bench();
    bad.device.ops = &ops;
    bad.run(memory_suite(), gpu_case("copy", way));
    EXPECT_EQ(bad.record.state_, results::CaseState::fail) << way;
    EXPECT_GE(bad.record.miscompares(), 1u) << way;
    ASSERT_FALSE(bad.record.events_.empty()) << way;
    EXPECT_EQ(bad.record.events_[0].kind, "memory-fault");
  }
}

TEST(GpuMemoryRun, PatternsShowTheirShareOfTheBoundAndHaveNoFloor) {
  Gpu gpu;
  gpu.memory_clock_max_hz = 1e9;
  gpu.memory_bus_bits = 4096;
  Case c;
  c.suite = "memory";
  c.operation = "pattern";
  c.name = "pattern-own-address-together";
  c.bytes = 1 << 20;
  c.parameters = {{"mode", "together"}, {"pattern", "own-address"}};
  Bench b = gpu_bench();
  b.device.gpu = true;
  b.topology().nodes[0].gpus = {gpu};
  b.topology().ranks[0].gpu = 0;
  b.run(memory_suite(), c);
  ASSERT_EQ(b.record.state_, results::CaseState::pass) << b.record.reason_;
  const auto& values = b.record.rows_.at(0).values;
  ASSERT_TRUE(values.contains("bound_share"));
  EXPECT_NEAR(values.at("bound_share").at(0) * 1.024e12 / median(values.at("bandwidth")), 1, 1e-9);
  EXPECT_EQ(b.record.parameters_.at("bound"), "memory clock x bus width");
  EXPECT_EQ(b.record.parameters_.at("bound_floor"), 0);
  for (const auto& metric : b.record.metrics_)
    EXPECT_NE(metric.judging->floor, results::Floor::gpu_bound) << metric.name;
  Bench host = gpu_bench();
  host.run(memory_suite(), c);
  EXPECT_FALSE(host.record.rows_.at(0).values.contains("bound_share"));
  EXPECT_FALSE(host.record.parameters_.contains("bound"));
}

/// Seconds each, on a host that is far too slow.
TEST(GpuMemoryRun, FillingAndCheckingBesideCopiesIsProgress) {
  for (const char* way : {"h2d", "d2h", "local"}) {
    supervisor::Heartbeat heartbeat;
    FakeOps ops;
    Bench b = gpu_bench();
    b.device.ops = &ops;
    const Case c = gpu_case("copy", way);
    b.with(c, [&](Context& context) {
      context.heartbeat = &heartbeat;
      memory_suite().run(c, context);
    });
    const auto samples = b.record.rows_.at(0).t.size();
    EXPECT_GE(heartbeat.iteration, 2 * samples) << way << ": one is the sample's own";
  }
}

TEST(GpuStreams, AnyPassOfASampleThatStoresNothingShows) {
  constexpr int passes = 5;
  for (int lost = 0; lost < passes; ++lost) {
    HookedDevice device;
    memory::StreamData data(device, kernels::StreamOp::triad, 3 * memory::period, 7);
    data.set_passes(passes);
    int calls = 0;
    device.after_stream = [&](kernels::StreamOp op, double*, std::size_t) {
      if (op == kernels::StreamOp::triad) device.drop_triad = ++calls == 2 * passes + lost;
    };
    for (int sample = 0; sample < 3; ++sample) {
      data.prepare();
      data.run(passes);
      EXPECT_EQ(data.check().count > 0, sample == 2) << "pass " << lost << " of the third sample";
    }
  }
}

}  // namespace
}  // namespace assay
