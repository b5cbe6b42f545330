// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>

#include "fresh.hpp"
#include "kernels/chase.hpp"
#include "kernels/fma_peak.hpp"
#include "kernels/stream.hpp"
#include "tests/kernels/cuda_contract.hpp"

namespace assay::test {
namespace {

using kernels::StreamOp;

class CudaStream : public FreshCudaKernel {
 protected:
  /// Small integers: sums and multiply-adds are exact in any order.
  std::vector<double> integers(std::size_t n) {
    std::vector<double> v(n);
    for (double& x : v) x = static_cast<double>(below(1000));
    return v;
  }
};

TEST_F(CudaStream, EveryOperationSizeAndAlignmentIsTheHosts) {
  std::vector<std::size_t> counts = {0, 1, 2, 3, 5, 31, 32, 33, 1023, 20'000 + below(20'000)};
  for (const std::size_t count : counts) {
    for (const StreamOp op : {StreamOp::read, StreamOp::write, StreamOp::copy, StreamOp::triad}) {
      const std::size_t at_a = below(3), at_b = below(3), at_c = below(2) == 0 ? at_b : below(3);
      SCOPED_TRACE(std::string(to_string(op)) + " of " + std::to_string(count) + " at " +
                   std::to_string(at_a) + ", " + std::to_string(at_b) + ", " + std::to_string(at_c));
      const auto a = integers(count + 8), b = integers(count + 8), c = integers(count + 8);
      const OnDevice<double> da(a), db(b), dc(c), sum(std::vector<double>{7});
      kernels::cuda::stream(op, da.get() + at_a, db.get() + at_b, dc.get() + at_c, count, sum.get(), nullptr);
      finish();
      std::vector<double> expected = a;
      const double total =
          kernels::host::stream(op, expected.data() + at_a, b.data() + at_b, c.data() + at_c, count);
      EXPECT_EQ(da.host(), expected);
      EXPECT_EQ(db.host(), b);
      EXPECT_EQ(dc.host(), c);
      EXPECT_EQ(sum.host()[0], 7 + total);
    }
  }
}

class CudaChase : public FreshCudaKernel {
 protected:
  struct Walk {
    kernels::ChaseEnd end;
    double ns;
  };
  static Walk walk(const OnDevice<std::uint64_t>& memory, std::size_t nodes, std::uint64_t key,
                   std::size_t start, std::size_t steps) {
    const OnDevice<kernels::ChaseEnd> end(1);
    const OnDevice<double> ns(1);
    kernels::cuda::chase_walk(memory.get(), nodes * 64, key, start, steps, end.get(), ns.get(), nullptr);
    finish();
    return {end.host()[0], ns.host()[0]};
  }
};

TEST_F(CudaChase, IsOneCycleThatTheHostCanWalk) {
  for (const std::size_t nodes :
       {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{64}, 100 + below(5000)}) {
    const std::uint64_t key = bits();
    const OnDevice<std::uint64_t> memory(nodes * 8);
    kernels::cuda::chase_build(memory.get(), nodes * 64, key, nullptr);
    finish();
    const auto words = memory.host();
    std::vector<bool> seen(nodes, false);
    std::size_t at = 0;
    for (std::size_t i = 0; i < nodes; ++i) {
      ASSERT_FALSE(seen[at]) << "came back after " << i << " of " << nodes;
      seen[at] = true;
      const auto end = kernels::host::chase_walk(words.data(), nodes * 64, key, at, 1);
      ASSERT_TRUE(end.intact);
      at = end.node;
    }
    EXPECT_EQ(at, 0u);
    const std::size_t start = below(nodes), steps = below(3 * nodes);
    const Walk there = walk(memory, nodes, key, start, steps);
    EXPECT_TRUE(there.end.intact);
    EXPECT_EQ(there.end.node, kernels::host::chase_walk(words.data(), nodes * 64, key, start, steps).node);
    EXPECT_GE(there.ns, 0);
  }
}

TEST_F(CudaChase, IsNotInOrderAndEndsAtForeignNodes) {
  const std::uint64_t key = bits();
  const std::size_t nodes = 1000;
  const OnDevice<std::uint64_t> memory(nodes * 8);
  kernels::cuda::chase_build(memory.get(), nodes * 64, key, nullptr);
  finish();
  const auto words = memory.host();
  std::size_t near = 0;
  for (std::size_t i = 0; i < nodes; ++i)
    near += std::abs(static_cast<std::int64_t>(words[i * 8]) - static_cast<std::int64_t>(i)) <= 4;
  EXPECT_LT(near, 60u);  // 8 expected
  EXPECT_FALSE(walk(memory, nodes, key + 1, 0, 10).end.intact);
  auto broken = words;
  broken[8 * below(nodes)] = ~std::uint64_t{0};
  EXPECT_FALSE(walk(OnDevice<std::uint64_t>(broken), nodes, key, 0, nodes).end.intact);
}

TEST(ChaseOrder, IsAPermutationForEverySize) {
  for (std::uint64_t nodes = 1; nodes < 70; ++nodes) {
    std::vector<bool> seen(nodes, false);
    const auto order = kernels::chase_order(nodes, nodes * 77);
    for (std::uint64_t p = 0; p < nodes; ++p) seen.at(order.node_at(p)) = true;
    EXPECT_EQ(std::count(seen.begin(), seen.end(), true), static_cast<std::ptrdiff_t>(nodes));
  }
  // More nodes than 32 bits count.
  const auto many = kernels::chase_order(std::uint64_t{5} << 32, 1);
  std::uint64_t most = 0;
  for (std::uint64_t p = 0; p < 1000; ++p)
    most = std::max(most, many.node_at((std::uint64_t{5} << 32) - 1 - p));
  EXPECT_GT(most, std::uint64_t{1} << 32);
  EXPECT_LT(most, many.nodes);
}

using CudaFmaPeak = CudaKernel;

TEST_F(CudaFmaPeak, CountsItsWorkAndStaysInside) {
  const OnDevice<unsigned long long> escaped(std::vector<unsigned long long>{0});
  const double one = kernels::cuda::fma_burn_fp32(1, escaped.get(), nullptr);
  EXPECT_EQ(kernels::cuda::fma_burn_fp32(3, escaped.get(), nullptr), 3 * one);
  EXPECT_EQ(std::fmod(kernels::cuda::fma_burn_fp64(2, escaped.get(), nullptr), 2.0 * 256), 0);
  finish();
  EXPECT_GT(one, 0);
  EXPECT_EQ(escaped.host()[0], 0u);
}

}  // namespace
}  // namespace assay::test
