// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "base/error.hpp"
#include "device/device.hpp"
#include "fresh.hpp"
#include "kernels/digest.hpp"
#include "kernels/gemm_golden.hpp"

namespace assay {
namespace {

using kernels::StreamOp;

std::unique_ptr<Device> device_with(int threads) {
  return make_host_device(std::vector<int>(static_cast<std::size_t>(threads), 0), std::vector<int>(1, 0),
                          false);
}

class HostDevices : public test::LinkRetest, public ::testing::WithParamInterface<int> {
 protected:
  HostDevices() : device(device_with(GetParam())) { device->reserve(bytes); }

  static constexpr std::size_t bytes = std::size_t{44} << 20;
  template <typename T>
  T* at(std::size_t offset) {
    return reinterpret_cast<T*>(device->arena().data() + offset);
  }
  std::unique_ptr<Device> device;
};
INSTANTIATE_TEST_SUITE_P(Threads, HostDevices, ::testing::Values(1, 2, 3));

TEST_P(HostDevices, SaysWhatItIs) {
  EXPECT_EQ(device->kind(), "host");
  EXPECT_EQ(device->threads(), GetParam());
  EXPECT_EQ(device->identity().at("threads"), std::to_string(GetParam()));
  EXPECT_FALSE(device->identity().at("blas").empty());
  EXPECT_EQ(device->numa_of_thread(0), 0);
  EXPECT_EQ(device->numa_of_thread(-1), -1);
  EXPECT_EQ(device->numa_of_thread(1), -1);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(device->arena().data()) % (2u << 20), 0u);
  EXPECT_GE(device->arena().size(), bytes);
}

TEST_P(HostDevices, GemmEqualsTheGoldenOnIntegers) {
  const std::size_t m = 61 + below(60), n = 61 + below(60), k = 61 + below(200);
  std::vector<float> a(m * k), b(k * n), c(m * n, std::nanf("")), golden(m * n, std::nanf(""));
  device->fill_integer(NumType::fp32, a.data(), a.size(), bits(), 15);
  device->fill_integer(NumType::fp32, b.data(), b.size(), bits(), 15);
  device->gemm(NumType::fp32, {m, n, k}, a.data(), b.data(), c.data());
  kernels::host::gemm_golden_fp32(a.data(), b.data(), golden.data(), m, n, k, 0, m);
  EXPECT_EQ(c, golden);
  std::vector<double> a64(a.begin(), a.end()), b64(b.begin(), b.end()), c64(m * n, std::nan(""));
  device->gemm(NumType::fp64, {m, n, k}, a64.data(), b64.data(), c64.data());
  EXPECT_EQ(c64, std::vector<double>(golden.begin(), golden.end()));
}

TEST_P(HostDevices, FillsAndDigestsDoNotDependOnTheNumberOfThreads) {
  const auto one = device_with(1);
  const std::size_t count = (std::size_t{9} << 20) / 4 * 3 + below(1000);
  const std::size_t shift = 8 * below(1000);
  const std::uint64_t key = bits();
  auto* data = at<float>(shift);
  std::vector<float> expected(count, std::nanf(""));
  device->fill_uniform(NumType::fp32, data, count, key);
  one->fill_uniform(NumType::fp32, expected.data(), count, key);
  ASSERT_EQ(std::memcmp(data, expected.data(), count * 4), 0);
  const std::size_t odd_bytes = count * 4 - below(8);
  EXPECT_EQ(device->digest(data, odd_bytes), kernels::host::digest(expected.data(), odd_bytes, 0));
  device->fill_integer(NumType::fp32, data, count, key, 5);
  one->fill_integer(NumType::fp32, expected.data(), count, key, 5);
  EXPECT_EQ(std::memcmp(data, expected.data(), count * 4), 0);
}

TEST_P(HostDevices, StreamsAllElementsAndNoneTwice) {
  for (const std::size_t n : {std::size_t{5}, std::size_t{100'000}, std::size_t{1'700'000} + below(1000)}) {
    double* a = at<double>(64 * below(5));
    double* b = at<double>(std::size_t{15} << 20);
    double* c = at<double>((std::size_t{30} << 20) + 8);
    for (std::size_t i = 0; i < n; ++i) {
      a[i] = std::nan("");
      b[i] = static_cast<double>(i);
      c[i] = static_cast<double>(i % 1001);
    }
    a[n] = -7;
    device->stream(StreamOp::triad, a, b, c, n);
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(a[i], b[i] + 3.0 * c[i]) << i << " of " << n;
    device->stream(StreamOp::copy, a, c, nullptr, n);
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(a[i], c[i]) << i << " of " << n;
    device->stream(StreamOp::write, a, nullptr, nullptr, n);
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(a[i], kernels::stream_value) << i << " of " << n;
    device->stream(StreamOp::read, a, nullptr, nullptr, n);
    EXPECT_EQ(a[n], -7) << "wrote past the end";
  }
}

TEST_P(HostDevices, SweepsFindOneWrongBitAnywhere) {
  const std::size_t n = (std::size_t{4} << 20) + below(10'000);
  auto* words = at<std::uint64_t>(8 * below(100));
  for (const std::string& name : kernels::pattern_names()) {
    auto pattern = kernels::make_pattern(name, bits(), 0);
    const auto& sweeps = pattern.sweeps;
    // The start of a pattern, up to its first verifying sweeps, and its end if that is not too long.
    for (std::size_t i = 0; i < std::min<std::size_t>(sweeps.size(), 6); ++i) {
      kernels::ErrorLog log;
      const bool hit = sweeps[i].verify;
      const std::size_t bad = std::vector<std::size_t>{0, n / 2, n - 1, below(n)}[below(4)];
      if (hit) words[bad] ^= 64;
      device->sweep(sweeps[i], words, n, log);
      ASSERT_EQ(log.count(), hit ? 1u : 0u) << name << ", sweep " << i << ", word " << bad << " of " << n;
      if (!hit) continue;
      EXPECT_EQ(log.records()[0].index, bad);
      EXPECT_EQ(log.records()[0].expected ^ log.records()[0].actual, 64u);
      EXPECT_LT(log.records()[0].thread, GetParam());
      if (!sweeps[i].write || (sweeps[i].powers_only && !std::has_single_bit(bad))) words[bad] ^= 64;
    }
  }
}

TEST_P(HostDevices, PeakAndLatencyAreNumbersOfThisWorld) {
  for (const NumType type : {NumType::fp32, NumType::fp64}) {
    const double rate = device->fma_peak(type, 0.02);
    EXPECT_GT(rate, 1e8);
    EXPECT_LT(rate, 1e14);
  }
  const double ns = device->chase(device->arena().data(), std::size_t{8} << 20, 100'000, 7).ns;
  EXPECT_GT(ns, 0.5);
  EXPECT_LT(ns, 100'000.0);
  // Used for something else in between: found out and built again.
  device->fill_uniform(NumType::fp64, device->arena().data(), 1 << 20, 3);
  const ChaseTime again = device->chase(device->arena().data(), std::size_t{8} << 20, 100'000, 7);
  EXPECT_GT(again.ns, 0.5);
  EXPECT_TRUE(again.broken);
  EXPECT_FALSE(device->chase(device->arena().data(), std::size_t{8} << 20, 100'000, 7).broken);
}

void expect_error(ErrorKind kind, const std::string& part, const std::function<void()>& f) {
  try {
    f();
    ADD_FAILURE() << "no error that names " << part;
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind);
    const std::string text = e.what();
    EXPECT_NE(text.find(part), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos);
  }
}

TEST(HostDevice, RefusesWhatItCannotDo) {
  const auto device = device_with(1);
  float x = 0;
  expect_error(ErrorKind::device, "bf16", [&] { device->gemm(NumType::bf16, {1, 1, 1}, &x, &x, &x); });
  expect_error(ErrorKind::device, "fp8", [&] { device->fma_peak(NumType::fp8, 0.01); });
  expect_error(ErrorKind::device, "n = 4294967296", [&] {
    device->gemm(NumType::fp32, {1, std::size_t{1} << 32, 1}, &x, &x, &x);
  });
  expect_error(ErrorKind::device, "limit", [&] { device->fill_integer(NumType::fp32, &x, 1, 1, -1); });
  expect_error(ErrorKind::resource, "TiB", [&] { device->reserve(std::size_t{1} << 46); });
  expect_error(ErrorKind::resource, "cannot reserve",
               [&] { device->reserve(std::numeric_limits<std::size_t>::max()); });
  expect_error(ErrorKind::resource, "CPU 1023", [] { make_host_device({0, 1023}, {0, 0}, true); });
}

TEST(HostDevice, KeepsTheArenaWhenLessIsAsked) {
  const auto device = device_with(2);
  device->reserve(10 << 20);
  auto* p = device->arena().data();
  p[5] = std::byte{42};
  device->reserve(1 << 20);
  EXPECT_EQ(device->arena().data(), p);
  EXPECT_EQ(p[5], std::byte{42});
  device->reserve(50 << 20);
  EXPECT_GE(device->arena().size(), std::size_t{50} << 20);
}

}  // namespace
}  // namespace assay
