// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include "fresh.hpp"
#include "kernels/chase.hpp"
#include "kernels/fill.hpp"

namespace assay {
namespace {

namespace host = kernels::host;

class Chase : public test::LinkRetest {};

TEST_F(Chase, IsOneCycleOverAllNodes) {
  for (const std::size_t nodes : {std::size_t{2}, std::size_t{3}, std::size_t{64}, 100 + below(5000)}) {
    const std::uint64_t key = bits();
    std::vector<std::uint64_t> memory(nodes * 8, bits());
    host::chase_build(memory.data(), nodes * 64, key);
    std::vector<bool> seen(nodes, false);
    std::size_t at = 0;
    for (std::size_t i = 0; i < nodes; ++i) {
      ASSERT_FALSE(seen[at]) << "came back after " << i << " of " << nodes;
      seen[at] = true;
      const auto end = host::chase_walk(memory.data(), nodes * 64, key, at, 1);
      ASSERT_TRUE(end.intact);
      at = end.node;
    }
    EXPECT_EQ(at, 0u);
    EXPECT_EQ(host::chase_walk(memory.data(), nodes * 64, key, 1, 5 * nodes).node, 1u);
  }
}

TEST_F(Chase, DependsOnTheKeyAndIsNotInOrder) {
  std::vector<std::uint64_t> one(8000), two(8000), again(8000);
  const std::uint64_t key = bits();
  host::chase_build(one.data(), 64000, key);
  host::chase_build(two.data(), 64000, key + 1);
  host::chase_build(again.data(), 64000, key);
  EXPECT_EQ(one, again);
  std::size_t near = 0, same = 0;
  for (std::size_t i = 0; i < 1000; ++i) {
    const auto a = static_cast<std::int64_t>(one[i * 8]), b = static_cast<std::int64_t>(two[i * 8]);
    same += a == b;
    near += std::abs(a - static_cast<std::int64_t>(i)) <= 4;
  }
  EXPECT_LT(same, 20u);
  EXPECT_LT(near, 60u);  // 8 of 1000 expected
}

TEST_F(Chase, ForeignNodesEndTheWalk) {
  std::vector<std::uint64_t> memory(8 * 500);
  const std::uint64_t key = bits();
  host::chase_build(memory.data(), 64 * 500, key);
  EXPECT_FALSE(host::chase_walk(memory.data(), 64 * 500, key + 1, 0, 10).intact);
  memory[8 * below(500)] = ~std::uint64_t{0};
  EXPECT_FALSE(host::chase_walk(memory.data(), 64 * 500, key, 0, 500).intact);
}

class Fill : public test::LinkRetest {};

TEST_F(Fill, UniformHasRangeAndMoments) {
  const std::uint64_t key = bits();
  const std::size_t n = 200'001, cut = 1 + below(n - 1);
  std::vector<float> f(n, std::nanf("")), f2(n);
  std::vector<double> d(n, std::nan("")), d2(n);
  host::fill_uniform_fp32(f.data(), n, key, 0);
  host::fill_uniform_fp64(d.data(), n, key, 0);
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < n; ++i) {
    ASSERT_TRUE(f[i] >= -1.0f && f[i] < 1.0f && d[i] >= -1.0 && d[i] < 1.0) << i;
    sum += d[i];
    squares += d[i] * d[i];
  }
  EXPECT_NEAR(sum / static_cast<double>(n), 0.0, 6 * std::sqrt(1.0 / 3 / static_cast<double>(n)));
  EXPECT_NEAR(squares / static_cast<double>(n), 1.0 / 3, 6 * std::sqrt(4.0 / 45 / static_cast<double>(n)));
  host::fill_uniform_fp32(f2.data(), cut, key, 0);
  host::fill_uniform_fp32(f2.data() + cut, n - cut, key, cut);
  host::fill_uniform_fp64(d2.data(), cut, key, 0);
  host::fill_uniform_fp64(d2.data() + cut, n - cut, key, cut);
  EXPECT_EQ(f, f2);
  EXPECT_EQ(d, d2);
  host::fill_uniform_fp64(d2.data(), n, key + 1, 0);
  std::size_t same = 0;
  for (std::size_t i = 0; i < n; ++i) same += d[i] == d2[i];
  EXPECT_LT(same, 3u);
}

TEST_F(Fill, IntegersReachBothLimitsEvenly) {
  std::vector<float> f(77'777, std::nanf(""));
  std::vector<double> d(f.size(), std::nan(""));
  const std::uint64_t key = bits();
  host::fill_integer_fp32(f.data(), f.size(), key, 0, 3);
  host::fill_integer_fp64(d.data(), d.size(), key, 0, 3);
  std::vector<std::size_t> counts(7);
  for (std::size_t i = 0; i < f.size(); ++i) {
    ASSERT_EQ(static_cast<double>(f[i]), d[i]);
    ASSERT_EQ(d[i], std::round(d[i]));
    ASSERT_LE(std::abs(d[i]), 3.0);
    ++counts[static_cast<std::size_t>(d[i] + 3)];
  }
  for (const std::size_t c : counts) EXPECT_NEAR(static_cast<double>(c), 77'777.0 / 7, 600.0);
  host::fill_integer_fp64(d.data(), d.size(), key, 0, 0);
  for (const double x : d) ASSERT_EQ(x, 0.0);
}

}  // namespace
}  // namespace assay
