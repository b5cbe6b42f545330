// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "suite/suite.hpp"

namespace assay::train {

/// The cases of a level; checks --train.*.
std::vector<Case> plan_cases(const PlanInput& input);
/// On another kind of device than that of the topology: "host" or "cuda".
std::vector<Case> plan_cases(const PlanInput& input, std::string_view device);

}  // namespace assay::train
