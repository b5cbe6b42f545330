// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "run/suite.hpp"

namespace assay::train {

/// The cases of a level; checks --train.*.
std::vector<Case> plan_cases(const PlanInput& input);

}  // namespace assay::train
