// SPDX-License-Identifier: Apache-2.0
// When the slow half of a population is wider than the fast half.
#include "verdict/skew.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "measure/statistics.hpp"
#include "verdict/constants.hpp"

namespace assay::verdict {
namespace {

/// Quantiles of a normal distribution with mean 0 and deviation 1.
std::vector<double> normal(int n) {
  std::vector<double> out;
  for (int i = 0; i < n; ++i) out.push_back(normal_quantile((i + 0.5) / n));
  return out;
}

TEST(Skew, OfANormalPopulationThereIsNone) {
  for (const int n : {6, 8, 60, 256}) EXPECT_LT(halves_of(normal(n)).skew.evidence, 0.1) << n;
}

TEST(Skew, ATailBelowACeilingIsWiderThanTheOtherHalf) {
  std::vector<double> values;
  for (int i = 0; i < 60; ++i) values.push_back(std::log((i + 0.5) / 60));
  const auto halves = halves_of(values);
  EXPECT_GT(halves.skew.evidence, constants::skew_certain);
  EXPECT_GT(halves.slow, 3 * halves.fast);
  // The slowest is 4 of its deviations from the median, by those of the slow half.
  const double nearer = nearer_by(values[0], -15, halves, halves.skew.evidence, {});
  EXPECT_LT(15 / nearer, 4);
}

TEST(Skew, SlowPartsBelowAGapAreNoTail) {
  std::vector<double> values = normal(231);
  // The gap below the slowest of the others is 2.8 deviations: one part may have it, and not so many.
  for (const double x : normal(25)) values.push_back(values[0] - 4.8 + x);
  std::sort(values.begin(), values.end());
  EXPECT_LT(halves_of(values).skew.evidence, constants::skew_doubt);
  EXPECT_GT(halves_of_all(values).skew.evidence, constants::skew_certain);
}

TEST(Skew, WithoutEvidenceNothingIsNearer) {
  const auto halves = halves_of(normal(60));
  EXPECT_EQ(nearer_by(-8, -8, halves, 0, {}), 1);
  EXPECT_EQ(nearer_by(-8, -8, halves, 0, {constants::skew_doubt, 1}), 1);
  EXPECT_GT(nearer_by(-8, -8, halves, 0, {constants::skew_certain, 1}), 2);
}

}  // namespace
}  // namespace assay::verdict
