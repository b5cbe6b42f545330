// SPDX-License-Identifier: Apache-2.0
// Cases that only GPUs have.
#pragma once

#include <vector>

#include "suite/suite.hpp"

namespace assay::memory {

/// RAM patterns of a level, the dearer ones at the longer levels.
std::vector<std::string> host_patterns(Level level);
std::vector<std::string> gpu_patterns(Level level);

/// Tests of on-chip memory and copies between host and GPU: none on hosts, and none at smoke but a copy each
/// way. `turns`: devices of a node that take turns in `alone`.
std::vector<Case> gpu_cases(const PlanInput& input, bool alone, bool together, int turns);

}  // namespace assay::memory
