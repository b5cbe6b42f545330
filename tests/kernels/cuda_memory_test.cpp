// SPDX-License-Identifier: Apache-2.0
// The memory operations of a GPU as a Device: against the host's device, which does the same.
#include <cstring>
#include <memory>

#include "base/error.hpp"
#include "device/corrupt.hpp"
#include "device/cuda/cuda_backend.hpp"
#include "device/memory_ops.hpp"
#include "fresh.hpp"
#include "tests/kernels/cuda_contract.hpp"

namespace assay::test {
namespace {

using kernels::Background;
using kernels::ErrorLog;
using kernels::Sweep;

class CudaMemory : public FreshCudaKernel {
 protected:
  void SetUp() override {
    FreshCudaKernel::SetUp();
    if (IsSkipped()) return;
    std::string why;
    device = cuda_backend().make_device(cuda_backend().visible(why).at(0).uuid);
    device->reserve(bytes);
  }
  template <typename T>
  T* at(std::size_t offset = 0) {
    return reinterpret_cast<T*>(device->arena().data() + offset);
  }
  static constexpr std::size_t bytes = std::size_t{4} << 20;
  std::unique_ptr<Device> device;
};

TEST_F(CudaMemory, ASweepReportsItsErrorsToTheHost) {
  Sweep write, check;
  write.write = check.verify = true;
  write.next = check.expected = {Background::own_address, bits(), 0, false};
  const std::size_t n = 50'000 + below(1000), bad = below(n);
  ErrorLog nothing;
  device->sweep(write, at<std::uint64_t>(), n, nothing);
  flip_bit(*device, at<std::uint64_t>(), bad, 8, 33);
  for (const bool repair : {false, true}) {
    check.write = repair;
    check.next = write.next;
    ErrorLog log;
    device->sweep(check, at<std::uint64_t>(), n, log);
    ASSERT_EQ(log.count(), 1u);
    const kernels::ErrorRecord r = log.records().at(0);
    EXPECT_EQ(r.index, bad);
    EXPECT_EQ(r.expected, data_word(check.expected, bad));
    EXPECT_EQ(r.expected ^ r.actual, std::uint64_t{1} << 33);
    EXPECT_EQ(r.reread, r.actual);
    EXPECT_FALSE(r.unstable);
    EXPECT_TRUE(r.sm >= 0 && r.warp >= 0 && r.lane >= 0);
    EXPECT_EQ(log.bits()[33] + log.bits()[64 + 33], 1u);
  }
  ErrorLog clean;
  device->sweep(check, at<std::uint64_t>(), n, clean);
  EXPECT_EQ(clean.count(), 0u) << "a verifying write repairs";
}

TEST_F(CudaMemory, MoreErrorsThanRecordsAreCounted) {
  Sweep check;
  check.verify = true;
  check.expected = {Background::random, bits(), 0, false};
  ErrorLog log;
  const std::size_t n = 30'000;
  device->fill_integer(NumType::fp64, at<double>(), n, 1, 1000);
  device->sweep(check, at<std::uint64_t>(), n, log);
  EXPECT_EQ(log.count(), n);
  EXPECT_EQ(log.records().size(), 1000u);
}

TEST_F(CudaMemory, ChainsAreBuiltOnceAndAgainWhenTheMemoryWasUsed) {
  constexpr std::size_t size = 1 << 18;
  for (int walk = 0; walk < 2; ++walk) {
    const ChaseTime time = device->chase(at<void>(), size, 2000, 7);
    EXPECT_GT(time.ns, 0);
    EXPECT_FALSE(time.broken);
  }
  device->fill_uniform(NumType::fp64, at<double>(), 1 << 15, 3);
  const ChaseTime time = device->chase(at<void>(), size, 2000, 7);
  EXPECT_GT(time.ns, 0);
  ASSERT_TRUE(time.broken);
  EXPECT_LT(time.broken->byte_index, size);
  EXPECT_EQ(time.broken->actual, time.broken->reread);
  EXPECT_NE(time.broken->actual, time.broken->expected);
  EXPECT_THROW(device->chase(at<void>(), 64, 10, 7), Error);
}

TEST_F(CudaMemory, PayloadsDigestsPeaksAndLimits) {
  const auto key = kernels::payload_key(bits(), 1, 2, 3);
  device->payload_fill(key, at<void>(3), 100'001);
  EXPECT_EQ(device->payload_check(key, at<void>(3), 100'001).count, 0u);
  flip_bit(*device, at<char>(3), 8 * 777, 1, 4);
  const auto errors = device->payload_check(key, at<void>(3), 100'001);
  EXPECT_EQ(errors.count, 1u);
  EXPECT_EQ(errors.first_index, 777u);
  EXPECT_GT(device->fma_peak(NumType::fp32, 0.001), 0);
  EXPECT_THROW(device->fma_peak(NumType::bf16, 0.001), Error);
  EXPECT_THROW(device->fill_integer(NumType::fp8, at<void>(), 10, 1, 17), Error);
  device->fill_integer(NumType::fp8, at<void>(), 10, 1, 16);
  EXPECT_GT(device->cache_bytes(), 0u);
}

TEST_F(CudaMemory, OnChipTestsRunOnAllMultiprocessors) {
  MemoryOps* ops = device->memory_ops();
  ASSERT_NE(ops, nullptr);
  for (const OnChip test : {OnChip::l1, OnChip::shared, OnChip::l2}) {
    const OnChipResult result = ops->on_chip(test, bits());
    EXPECT_EQ(result.errors, 0u) << to_string(test);
    EXPECT_GT(result.bytes, 0u);
    EXPECT_EQ(result.visited.size(), result.multiprocessors);
  }
}

class CudaCopies : public CudaMemory, public testing::WithParamInterface<CopyBy> {};
INSTANTIATE_TEST_SUITE_P(By, CudaCopies, testing::Values(CopyBy::engine, CopyBy::threads));

TEST_P(CudaCopies, GoBothWaysAtOnceAndInside) {
  MemoryOps* ops = device->memory_ops();
  const std::size_t n = 300'000;
  auto* host = static_cast<std::byte*>(ops->host_buffer(-1, 2 * n));
  const auto down = kernels::payload_key(bits(), 0, 1, 0), up = kernels::payload_key(bits(), 1, 0, 0);
  kernels::host::payload_fill(down, host, n);
  device->payload_fill(up, at<std::byte>(n), n);
  device->synchronize();
  ops->start_copy(CopyWay::to_device, GetParam(), at<std::byte>(), host, n);
  ops->start_copy(CopyWay::to_host, GetParam(), host + n, at<std::byte>(n), n);
  ops->finish_copies();
  ops->start_copy(CopyWay::inside, GetParam(), at<std::byte>(2 * n), at<std::byte>(), n);
  ops->finish_copies();
  EXPECT_EQ(device->payload_check(down, at<std::byte>(2 * n), n).count, 0u);
  EXPECT_EQ(device->payload_check(down, at<std::byte>(), n).count, 0u);
  EXPECT_EQ(kernels::host::payload_check(up, host + n, n).count, 0u);
}

}  // namespace
}  // namespace assay::test
