// SPDX-License-Identifier: Apache-2.0
// What a sample asks of a GPU, counted on the emulation: launches, waits of the host, atomics, bytes and
// lines. Times are for GPUs to say; these are what they follow from.
#include <gtest/gtest.h>

#include "device/memory_ops.hpp"
#include "emulation/traffic.hpp"
#include "suites/memory/layout.hpp"
#include "suites/memory/stream_data.hpp"
#include "tests/kernels/gpu_train_rig.hpp"
#include "transport/cuda/device_memory.hpp"
#include "workload/verified_product.hpp"

namespace assay {
namespace {

using kernels::StreamOp;

/// What `work` adds to the counts.
template <typename Work>
emulation::Counts cost_of(Work&& work) {
  const emulation::Counts before = emulation::counts();
  work();
  emulation::Counts cost = emulation::counts();
  cost.launches -= before.launches;
  cost.waits -= before.waits;
  cost.sleeps -= before.sleeps;
  cost.atomics -= before.atomics;
  cost.copied -= before.copied;
  cost.loaded -= before.loaded;
  cost.stored -= before.stored;
  cost.straddling -= before.straddling;
  return cost;
}

TEST(EmulatedCosts, BandwidthSampleIsOneLaunchForEachPassAndOneWait) {
  constexpr std::uint64_t passes = 3;  // of the rotation, whose odd places may lie within a line
  constexpr std::size_t count = memory::period + 160;
  constexpr std::size_t tile = 512 * 64, blocks = (count / 2 + tile - 1) / tile;  // vectors of a block
  const std::unique_ptr<Device> device = train::first_gpu();
  for (const StreamOp op : {StreamOp::read, StreamOp::write, StreamOp::copy, StreamOp::triad}) {
    SCOPED_TRACE(to_string(op));
    const std::uint64_t before = emulation::counts().copied;
    memory::StreamData data(*device, op, count, 7);
    if (memory::stream_buffers(op) == 3) {
      EXPECT_EQ(emulation::counts().copied - before, (2 * memory::period + count) * sizeof(double))
          << "a period of both sources, and a copy within the GPU: else rates depend on other cases";
    }
    const emulation::Counts cost = cost_of([&] { data.run(passes); });
    EXPECT_EQ(cost.launches, passes);
    EXPECT_EQ(cost.waits, 1u);
    EXPECT_EQ(cost.loaded + cost.stored, passes * count * kernels::stream_bytes_per_element(op));
    EXPECT_EQ(cost.straddling, 0u);
    EXPECT_EQ(cost.atomics, op == StreamOp::read ? passes * blocks : 0u) << "one for each block";
    EXPECT_EQ(data.check().count, 0u);
  }
}

TEST(EmulatedCosts, DigestIsOneReadAndOneAtomicForEachBlock) {
  const std::unique_ptr<Device> device = train::first_gpu();
  constexpr std::size_t bytes = 1 << 20;
  device->reserve(bytes);
  const emulation::Counts cost = cost_of([&] { device->digest(device->arena().data(), bytes); });
  EXPECT_EQ(cost.launches, 1u);
  EXPECT_EQ(cost.waits, 1u);
  EXPECT_EQ(cost.loaded, bytes);
  EXPECT_EQ(cost.straddling, 0u);
  EXPECT_EQ(cost.atomics, 8u) << "one block on each multiprocessor of the emulation";
}

TEST(EmulatedCosts, ABatchOfProductsIsCheckedWithOneCopyAndSparsePoison) {
  constexpr std::size_t n = 256, products = 8;
  const std::unique_ptr<Device> device = train::first_gpu();
  const GemmShape shape{n, n, n};
  const auto layout = workload::with_batch(workload::make_product_layout(NumType::fp32, shape, 0, 1 << 30),
                                           products * shape.flops(), shape, 1 << 30);
  ASSERT_EQ(layout.outputs, products);
  device->reserve(layout.bytes());
  workload::VerifiedProduct product(*device, NumType::fp32, shape, layout, device->arena().data(),
                                    RandomStream(7, "costs"),
                                    {[](void*, std::size_t, std::size_t) {},
                                     [](const workload::WrongElement&, std::uint64_t) { ADD_FAILURE(); },
                                     [](const char*) { ADD_FAILURE(); }});
  product.queue(products);
  device->synchronize();
  const emulation::Counts cost = cost_of([&] { product.check(); });
  EXPECT_EQ(cost.launches, 2 * products) << "a digest and a poison for each";
  EXPECT_EQ(cost.waits, 2u) << "for all digests, and for the poison";
  EXPECT_EQ(cost.loaded, products * layout.result_bytes);
  EXPECT_LT(cost.stored, products * layout.result_bytes / 100);
  EXPECT_GT(cost.stored, 0u);
}

TEST(EmulatedCosts, CopiesAreMadeByWhatTheyAreNamedAfter) {
  const std::unique_ptr<Device> device = train::first_gpu();
  constexpr std::size_t bytes = 1 << 20;
  device->reserve(2 * bytes);
  MemoryOps& ops = *device->memory_ops();
  std::byte *host = static_cast<std::byte*>(ops.host_buffer(-1, 2 * bytes)), *memory = device->arena().data();
  const struct {
    CopyWay way;
    std::byte *to, *from;
  } copies[] = {{CopyWay::to_device, memory, host},
                {CopyWay::to_host, host + bytes, memory},
                {CopyWay::inside, memory + bytes, memory}};
  for (const auto& copy : copies)
    for (const CopyBy by : {CopyBy::engine, CopyBy::threads}) {
      const bool threads = by == CopyBy::threads;
      const emulation::Counts cost = cost_of([&] {
        ops.start_copy(copy.way, by, copy.to, copy.from, bytes);
        ops.finish_copies();
      });
      EXPECT_EQ(cost.launches, threads ? 1u : 0u);
      EXPECT_EQ(cost.copied, threads ? 0 : bytes);
      EXPECT_EQ(cost.loaded, threads ? bytes : 0) << "with 16 bytes at a time";
      EXPECT_EQ(cost.straddling, 0u);
      EXPECT_EQ(cost.waits, 2u);
    }
}

TEST(EmulatedCosts, SecondStreamsSleepWhileTheyWait) {
  const std::unique_ptr<Device> device = train::first_gpu(), second = device->second_stream();
  device->reserve(1 << 20);
  const emulation::Counts cost = cost_of([&] {
    second->payload_fill({1}, device->arena().data(), 4096);
    second->synchronize();
    EXPECT_EQ(second->payload_check({1}, device->arena().data(), 4096).count, 0u);
  });
  EXPECT_EQ(cost.waits, 0u) << "cores that other threads of a burn need";
  EXPECT_EQ(cost.sleeps, 2u);
}

TEST(EmulatedCosts, StreamsOfMessagesComeFirst) {
  int lowest = 0, highest = 0, priority = 0;
  ASSERT_EQ(cudaDeviceGetStreamPriorityRange(&lowest, &highest), cudaSuccess);
  const cuda::Stream stream;
  ASSERT_EQ(cudaStreamGetPriority(stream.get(), &priority), cudaSuccess);
  EXPECT_EQ(priority, highest);
  EXPECT_LT(highest, lowest);
}

}  // namespace
}  // namespace assay
