// SPDX-License-Identifier: Apache-2.0
#include "simulate/draw.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "measure/statistics.hpp"

namespace assay::simulate {
namespace {

constexpr std::size_t many = 40000;

template <typename F>
std::vector<double> draws(const F& one) {
  std::vector<double> values(many);
  for (std::size_t i = 0; i < many; ++i) values[i] = one(i);
  return values;
}

double share_below(const std::vector<double>& values, double bound) {
  return static_cast<double>(
             std::count_if(values.begin(), values.end(), [&](double v) { return v < bound; })) /
         static_cast<double>(values.size());
}

TEST(SimulateDraw, NormalHasTheQuantilesOfTheNormal) {
  const Draw draw(RandomStream(7, "normal"));
  const auto z = draws([&](std::size_t i) { return draw.normal(i); });
  // Standard errors of a share p among 40000: sqrt(p (1-p) / n), at most 0.0025; four of them.
  EXPECT_NEAR(share_below(z, 0), 0.5, 0.010);
  EXPECT_NEAR(share_below(z, -1), 0.158655, 0.0075);
  EXPECT_NEAR(share_below(z, 2), 0.977250, 0.003);
  EXPECT_NEAR(share_below(z, -3), 0.001350, 0.0008);
}

TEST(SimulateDraw, HeavyTailsKeepTheCoreOfTheNormal) {
  const Draw draw(RandomStream(7, "heavy"));
  for (const int nu : {3, 4}) {
    const auto x = draws([&](std::size_t i) { return draw.heavy(i, nu); });
    EXPECT_NEAR(mad_sigma(x), 1.0, 0.03) << nu;
    EXPECT_NEAR(median(x), 0.0, 0.03) << nu;
    // P(t3 < -4.5367) and P(t4 < -4.3927) in unscaled units, that is -4 here: 0.01004 and 0.00589.
    EXPECT_NEAR(share_below(x, -4), nu == 3 ? 0.01004 : 0.00589, 0.002) << nu;
  }
}

TEST(SimulateDraw, ExponentialHasMeanOne) {
  const Draw draw(RandomStream(7, "exponential"));
  const auto x = draws([&](std::size_t i) { return draw.exponential(i, 3); });
  double sum = 0;
  for (const double v : x) sum += v;
  EXPECT_NEAR(sum / static_cast<double>(many), 1.0, 0.02);
  EXPECT_NEAR(share_below(x, std::log(2.0)), 0.5, 0.010);
}

TEST(SimulateDraw, NeighbouringIndicesAndSlotsAreIndependent) {
  const Draw draw(RandomStream(7, "independent"));
  double by_index = 0, by_slot = 0;
  for (std::size_t i = 0; i < many; ++i) {
    by_index += draw.normal(i) * draw.normal(i + 1);
    by_slot += draw.normal(i, 0) * draw.normal(i, 2);
  }
  EXPECT_NEAR(by_index / static_cast<double>(many), 0, 0.02);
  EXPECT_NEAR(by_slot / static_cast<double>(many), 0, 0.02);
}

}  // namespace
}  // namespace assay::simulate
