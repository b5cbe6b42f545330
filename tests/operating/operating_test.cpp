// SPDX-License-Identifier: Apache-2.0
// The verdict held to its operating curves. By day a small share, which can only show gross failures; with
// ASSAY_NIGHTLY=1 all of it.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "curve.hpp"

namespace assay::operating {
namespace {

bool nightly() {
  const char* value = std::getenv("ASSAY_NIGHTLY");
  return value != nullptr && std::strcmp(value, "1") == 0;
}

/// By day `share` of the runs. A cell fails when its bound excludes the target: chance alone does that to one in twenty
/// at the very edge, and to none that has room.
void hold(const std::vector<Cell>& cells, double share) {
  const auto results = measure(cells, nightly() ? 1 : share, std::max(1U, std::thread::hardware_concurrency()), 1);
  for (const Result& result : results) {
    const Cell& cell = *result.cell;
    if (!cell.held) continue;
    SCOPED_TRACE(row_of(result));
    if (cell.aim != Aim::at_most) {
      EXPECT_GE(upper_bound(result.count), cell.target);
    }
    if (cell.aim == Aim::at_most) {
      EXPECT_LE(lower_bound(result.count), cell.target);
    }
    if (cell.aim == Aim::between) {
      EXPECT_LE(lower_bound(result.count), cell.target_high);
    }
  }
}

TEST(Operating, HealthyFleetsAreLeftAlone) { hold(healthy_cells(), 0.02); }
TEST(Operating, SlowDevicesAreFound) { hold(recall_cells(), 0.02); }
TEST(Operating, TheNetworkIsLocalised) { hold(network_cells(), 0.01); }
TEST(Operating, ChangesAgainstTheOwnPastAreFound) { hold(history_cells(), 0.05); }
TEST(Operating, EqualFleetsCompareEqual) { hold(comparison_cells(), 0.05); }

TEST(Operating, BoundsAreThoseOfClopperAndPearson) {
  EXPECT_DOUBLE_EQ(lower_bound({0, 100}), 0);
  EXPECT_NEAR(upper_bound({0, 100}), 1 - std::pow(0.05, 0.01), 1e-9);
  EXPECT_NEAR(upper_bound({0, 2000}), 0.0014967, 1e-6);
  EXPECT_NEAR(lower_bound({100, 100}), std::pow(0.05, 0.01), 1e-9);
  EXPECT_DOUBLE_EQ(upper_bound({100, 100}), 1);
}

}  // namespace
}  // namespace assay::operating
