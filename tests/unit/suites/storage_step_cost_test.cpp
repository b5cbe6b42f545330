// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/error.hpp"
#include "suites/storage/step_cost.hpp"

namespace assay::storage {
namespace {

struct Rounds {
  std::vector<std::vector<double>> alone, during;
};

/// Steps of 20 ms with 3 % of noise in each and in each series, on a machine that gets `drift` times slower
/// over the rounds.
Rounds measured(std::size_t rounds, double cost, double drift, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> noise(0, 0.03);
  Rounds out;
  const auto series = [&](std::size_t at, double factor) {
    const double common = noise(random);
    const double slower = std::pow(drift, static_cast<double>(at) / static_cast<double>(2 * rounds));
    std::vector<double> seconds(10);
    for (double& s : seconds) s = 0.02 * factor * slower * std::exp(common + noise(random));
    return seconds;
  };
  out.alone.push_back(series(0, 1));
  for (std::size_t i = 0; i < rounds; ++i) {
    out.during.push_back(series(2 * i + 1, 1 + cost));
    out.alone.push_back(series(2 * i + 2, 1));
  }
  return out;
}

TEST(StorageStepCost, IsTheCostOnAMachineThatGetsSlowerOrFaster) {
  for (const double drift : {0.5, 1.0, 2.0}) {
    const Rounds r = measured(12, 0.2, drift, 1);
    const StepCost c = step_cost(r.alone, r.during);
    EXPECT_NEAR(c.cost, 0.2, 0.05) << drift;
    EXPECT_GT(c.low, 0.1) << drift;
    EXPECT_LT(c.high, 0.3) << drift;
  }
}

TEST(StorageStepCost, TheIntervalContainsTheTruthAsOftenAsItSays) {
  for (const double cost : {0.0, 0.1}) {
    for (const std::size_t rounds : {3u, 10u}) {
      int covered = 0;
      for (unsigned seed = 0; seed < 1000; ++seed) {
        const Rounds r = measured(rounds, cost, 1.5, 1000 + seed);
        const StepCost c = step_cost(r.alone, r.during);
        covered += c.low <= cost && cost <= c.high ? 1 : 0;
      }
      EXPECT_GE(covered, 930) << cost << " in " << rounds << " rounds";
    }
  }
}

TEST(StorageStepCost, OneRoundHasNoInterval) {
  const Rounds r = measured(1, 0.2, 1, 3);
  const StepCost c = step_cost(r.alone, r.during);
  EXPECT_NEAR(c.cost, 0.2, 0.2);
  EXPECT_TRUE(std::isnan(c.low) && std::isnan(c.high));
  EXPECT_THROW(step_cost(r.alone, {}), Error);
}

}  // namespace
}  // namespace assay::storage
