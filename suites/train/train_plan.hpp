// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "suite/suite.hpp"

namespace assay::train {

/// The cases of a level; checks --train.*.
std::vector<Case> plan_cases(const PlanInput& input);
/// On another kind of device than that of the topology.
std::vector<Case> plan_cases(const PlanInput& input, bool on_gpus);

}  // namespace assay::train
