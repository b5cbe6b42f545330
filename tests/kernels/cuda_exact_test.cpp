// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <limits>

#include "kernels/exact.hpp"
#include "tests/kernels/cuda_contract.hpp"

namespace assay::test {
namespace {

using CudaExact = CudaKernel;
using kernels::ExactErrors;
using kernels::ExactLine;

constexpr ExactLine line{3.0f, 17.0f, 0x9e3779b9u, 0x12345u, 8};

TEST_F(CudaExact, FillsAsTheHostDoes) {
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{4},
                                  std::size_t{1023}, std::size_t{100003}})
    for (const std::size_t shift : {std::size_t{0}, std::size_t{1}, std::size_t{3}}) {
      const std::uint64_t first = 5000000000ULL + shift;
      std::vector<float> expected(count + shift + 1, -1.0f);
      const OnDevice<float> data(expected);
      kernels::host::exact_fill(line, first, expected.data() + shift, count);
      kernels::cuda::exact_fill(line, first, data.get() + shift, count, nullptr);
      finish();
      EXPECT_EQ(data.host(), expected) << count << " from " << shift;
    }
}

ExactErrors check(const OnDevice<float>& data, std::size_t shift, std::size_t count, std::uint64_t first) {
  const OnDevice<ExactErrors> errors(1);
  kernels::cuda::exact_check(line, first, data.get() + shift, count, errors.get(), nullptr);
  return errors.host()[0];
}

TEST_F(CudaExact, FindsWhatTheHostFinds) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{5}, std::size_t{70001}})
    for (const std::size_t shift : {std::size_t{0}, std::size_t{2}}) {
      std::vector<float> values(count + shift);
      kernels::host::exact_fill(line, 99, values.data() + shift, count);
      EXPECT_EQ(check(OnDevice<float>(values), shift, count, 99).count, 0u);
      for (const std::size_t at : {std::size_t{0}, count / 2, count - 1})
        for (const float wrong :
             {values[shift + at] + 1, -values[shift + at], std::numeric_limits<float>::quiet_NaN()}) {
          std::vector<float> bad = values;
          bad[shift + at] = wrong;
          bad.back() = -1;
          const auto mine = check(OnDevice<float>(bad), shift, count, 99);
          const auto hosts = kernels::host::exact_check(line, 99, bad.data() + shift, count);
          EXPECT_EQ(mine.count, hosts.count);
          EXPECT_EQ(mine.first_index, hosts.first_index);
          EXPECT_EQ(mine.expected, hosts.expected);
          EXPECT_EQ(mine.actual, hosts.actual);
        }
    }
  EXPECT_EQ(check(OnDevice<float>(4), 0, 0, 0).count, 0u);
}

}  // namespace
}  // namespace assay::test
