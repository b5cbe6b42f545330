// SPDX-License-Identifier: Apache-2.0
#include "suites/congestion/canaries.hpp"

#include <gtest/gtest.h>

#include "suites/congestion/congestors.hpp"

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

TEST(Congestors, BlocksFitTheNetwork) {
  const auto fitted = [](std::size_t planned, double bytes_per_s, double latency_s) {
    double total_s = 0;
    const std::size_t block = fitted_block(planned, 0.06, [&](std::size_t bytes) {
      const double seconds = latency_s + static_cast<double>(bytes) / bytes_per_s;
      total_s += seconds;
      return seconds;
    });
    EXPECT_LT(total_s, std::max(0.12, 1.01 * (latency_s + 1024 / bytes_per_s)));
    return block;
  };
  EXPECT_EQ(fitted(32768, 1e9, 1e-5), 32768U);
  EXPECT_EQ(fitted(512, 1e9, 1e-5), 512U);
  EXPECT_EQ(fitted(262144, 1e6, 0), 32768U);    // 33 ms; twice that is too long
  EXPECT_EQ(fitted(32768, 1e3, 0), 56U);        // a NIC at 1 Mbit/s: 1.02 s for 1 KiB
  EXPECT_EQ(fitted(32768, 10.0, 0.5) % 8, 0U);  // never less than a word
  EXPECT_GE(fitted(32768, 10.0, 0.5), 8U);
}

TEST(Canaries, TimeNoMoreThanTheFileCanHold) {
  EXPECT_EQ(part_samples(Level::quick, 48), 500U);
  EXPECT_EQ(part_samples(Level::extended, 48), 125U);
  for (const Level level : {Level::smoke, Level::quick, Level::standard, Level::extended})
    for (const std::size_t ranks : {1U, 8192U, 100'000U}) EXPECT_GE(part_samples(level, ranks), 100U);
  EXPECT_EQ(part_samples(Level::standard, 100'000), 100U);
}

}  // namespace
}  // namespace assay::congestion
