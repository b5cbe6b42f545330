// SPDX-License-Identifier: Apache-2.0
#include "suites/congestion/canaries.hpp"

#include <gtest/gtest.h>

namespace assay::congestion {
namespace {

TEST(Canaries, TheLastSumOfAnyNumberOfRanksIsChecked) {
  constexpr std::size_t i = most_samples - 1;
  for (const int ranks : {2, 8192, 8193, 20000, 1000000})
    for (const bool over : {false, true}) {
      double sum = 0;
      for (int rank = 0; rank < ranks; ++rank) sum += sum_part(rank, i, over);
      EXPECT_EQ(read_sum(sum, ranks, i).last, over) << ranks;
      EXPECT_FALSE(read_sum(sum, ranks, i).wrong) << ranks;
      EXPECT_TRUE(read_sum(sum + 1, ranks, i).wrong) << ranks;
      EXPECT_TRUE(read_sum(sum - 1, ranks, i).wrong) << ranks;
    }
}

}  // namespace
}  // namespace assay::congestion
