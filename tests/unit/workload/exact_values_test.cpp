// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "workload/collective.hpp"
#include "workload/exact.hpp"

namespace assay::workload {
namespace {

TEST(ExactValues, TheSumIsExactInAnyOrder) {
  for (const int ranks : {1, 2, 3, 8, 100, 1024}) {
    const ExactValues values(11, ranks, 5);
    for (const std::uint64_t index : {0ULL, 1ULL, 77777ULL, 5000000000ULL}) {
      float up = 0, down = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        up += values.value(rank, index);
        down += values.value(ranks - 1 - rank, index);
      }
      EXPECT_EQ(up, values.sum(index));
      EXPECT_EQ(down, values.sum(index));
    }
  }
}

TEST(ExactValues, SumsStayExactForManyRanks) {
  for (const int ranks : {32768, 32769, 1000000}) {
    const ExactValues values(1, ranks, 2);
    double exact = 0;
    for (int rank = 0; rank < ranks; ++rank) exact += values.value(rank, 9);
    EXPECT_LT(exact, 16777216.0);
    EXPECT_EQ(static_cast<double>(values.sum(9)), exact);
  }
}

TEST(ExactValues, FillMatchesSingleValuesFromAnyPlace) {
  const ExactValues values(3, 4, 1);
  std::vector<float> data(5000);
  values.fill(2, 123456, data.data(), data.size());
  for (std::size_t i = 0; i < data.size(); ++i) ASSERT_EQ(data[i], values.value(2, 123456 + i));
  EXPECT_EQ(values.check_value(2, 123456, data.data(), data.size()).count, 0u);
  EXPECT_GT(values.check_value(1, 123456, data.data(), data.size()).count, 4900u) << "another rank's";
  EXPECT_GT(values.check_value(2, 123457, data.data(), data.size()).count, 4900u) << "another place";
  EXPECT_GT(ExactValues(3, 4, 2).check_value(2, 123456, data.data(), data.size()).count, 4500u)
      << "another iteration";
}

TEST(ExactValues, ChecksCountAndPlaceWrongBitsAlsoNan) {
  const ExactValues values(3, 4, 1);
  std::vector<float> data(3000);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = values.sum(i);
  EXPECT_EQ(values.check_sum(0, data.data(), data.size()).count, 0u);
  data[2999] = std::nanf("");
  data[1500] = std::nextafterf(data[1500], 0.0f);
  const ExactErrors errors = values.check_sum(0, data.data(), data.size());
  EXPECT_EQ(errors.count, 2u);
  EXPECT_EQ(errors.first_index, 1500u);
  EXPECT_EQ(errors.expected - errors.actual, 1u);
}

TEST(ExactValues, AMissingContributionIsSeenEverywhere) {
  const ExactValues values(3, 4, 1);
  std::vector<float> data(100);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = values.sum(i) - values.value(3, i);
  EXPECT_EQ(values.check_sum(0, data.data(), data.size()).count, data.size());
}

TEST(BusFactor, IsThatOfNcclTests) {
  EXPECT_DOUBLE_EQ(bus_factor(Op::all_reduce, 2), 1.0);
  EXPECT_DOUBLE_EQ(bus_factor(Op::all_reduce, 8), 1.75);
  EXPECT_DOUBLE_EQ(bus_factor(Op::reduce_scatter, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Op::all_gather, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Op::all_to_all, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Op::broadcast, 4), 1.0);
}

}  // namespace
}  // namespace assay::workload
