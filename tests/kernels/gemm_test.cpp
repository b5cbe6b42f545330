// SPDX-License-Identifier: Apache-2.0
#include <time.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "fresh.hpp"
#include "kernels/fma_peak.hpp"
#include "kernels/gemm_golden.hpp"

namespace assay {
namespace {

namespace host = kernels::host;

class Golden : public test::LinkRetest {
 protected:
  template <typename T>
  std::vector<T> integers(std::size_t count, int limit) {
    std::vector<T> v(count);
    for (T& x : v)
      x = static_cast<T>(static_cast<int>(below(static_cast<std::size_t>(2 * limit + 1))) - limit);
    return v;
  }

  template <typename T, typename Kernel>
  void check(std::size_t m, std::size_t n, std::size_t k, int limit, Kernel kernel) {
    SCOPED_TRACE("m=" + std::to_string(m) + " n=" + std::to_string(n) + " k=" + std::to_string(k));
    const auto a = integers<T>(m * k, limit), b = integers<T>(k * n, limit);
    constexpr T poison = std::numeric_limits<T>::quiet_NaN();
    const std::size_t from = m / 3, to = m - m / 4;
    std::vector<T> c(m * n + 16, poison);
    kernel(a.data(), b.data(), c.data(), m, n, k, from, to);
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        if (i < from || i >= to) {
          ASSERT_TRUE(std::isnan(c[i * n + j])) << "row " << i << " is not this call's";
          continue;
        }
        std::int64_t sum = 0;
        for (std::size_t p = 0; p < k; ++p)
          sum += static_cast<std::int64_t>(a[i * k + p]) * static_cast<std::int64_t>(b[p * n + j]);
        ASSERT_EQ(static_cast<std::int64_t>(c[i * n + j]), sum) << "at " << i << ", " << j;
      }
    }
    for (std::size_t i = m * n; i < c.size(); ++i) ASSERT_TRUE(std::isnan(c[i])) << "wrote past the end";
  }
};

TEST_F(Golden, IsExactForOddShapes) {
  const std::size_t shapes[][3] = {{1, 1, 1},     {3, 5, 7},     {13, 33, 65},
                                   {40, 31, 257}, {65, 97, 513}, {25, 64, 300}};
  for (const auto& s : shapes) {
    check<float>(s[0], s[1], s[2], 127, host::gemm_golden_fp32);
    check<double>(s[0], s[1], s[2], 1 << 20, host::gemm_golden_fp64);
  }
}

TEST_F(Golden, IsExactAtTheEdgeOfThePrecision) {
  // 255 products of 255 * 257 = 65535 make 16,711,425 < 2^24, with no bit to spare.
  std::vector<float> a(255, 255.0f), b(255, 257.0f);
  float c = -1;
  host::gemm_golden_fp32(a.data(), b.data(), &c, 1, 1, 255, 0, 1);
  EXPECT_EQ(c, 16711425.0f);
}

TEST_F(Golden, EmptyInnerDimensionGivesZeros) {
  std::vector<double> c(12, std::numeric_limits<double>::quiet_NaN());
  host::gemm_golden_fp64(nullptr, nullptr, c.data(), 3, 4, 0, 0, 3);
  for (const double x : c) EXPECT_EQ(x, 0.0);
}

double thread_cpu_s() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

TEST(FmaPeak, CountsTwoFlopPerLane) {
  const std::string isa = host::fma_isa();
  const double bytes = isa == "avx512" ? 64 : isa == "avx2" ? 32 : 16;
  EXPECT_EQ(host::fma_burn_fp32(1), 2 * 12 * bytes / 4);
  EXPECT_EQ(host::fma_burn_fp64(1), 2 * 12 * bytes / 8);
  for (auto* burn : {host::fma_burn_fp32, host::fma_burn_fp64}) {
    EXPECT_EQ(burn(0), 0.0);
    // A value that left the map's interval would make this 0.
    EXPECT_EQ(burn(1'000'000), burn(1) * 1e6);
  }
}

TEST(FmaPeak, DoesTheWorkItCounts) {
  constexpr std::uint64_t rounds = 4'000'000;
  for (auto* burn : {host::fma_burn_fp32, host::fma_burn_fp64}) {
    const double begin_s = thread_cpu_s();
    burn(rounds);
    // No core starts more than four vector instructions in a cycle, at no more than 7 GHz.
    EXPECT_GT(thread_cpu_s() - begin_s, rounds * 12 / (4 * 7e9));
  }
}

}  // namespace
}  // namespace assay
