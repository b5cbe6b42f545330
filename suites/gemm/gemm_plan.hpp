// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "suite/suite.hpp"

namespace assay::gemm {

/// The cases of the suite, required ones first. Throws Error(usage).
std::vector<Case> plan_cases(const PlanInput& input);

}  // namespace assay::gemm
