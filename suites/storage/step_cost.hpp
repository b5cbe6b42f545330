// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

namespace assay::storage {

/// What a checkpoint beside training costs a step, as a share of its time, with the 95 % interval. An
/// interval that contains 0 shows no cost; with fewer than 2 rounds it is NaN.
struct StepCost {
  double cost, low, high;
};

/// The seconds of the steps of each round: `during` a checkpoint, and alone before and after it, so that
/// `alone` has one series more. Each round is compared with its neighbours in time: a machine that gets
/// slower or faster over the case does not change the ratios.
StepCost step_cost(std::span<const std::vector<double>> alone, std::span<const std::vector<double>> during);

}  // namespace assay::storage
