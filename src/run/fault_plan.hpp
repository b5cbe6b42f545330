// SPDX-License-Identifier: Apache-2.0
// The part of a plan that an injected fault hits.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/fault_spec.hpp"
#include "run/planner.hpp"

namespace assay {

/// True when the case is selected and has what the fault breaks: messages for drop, a checked result of the
/// target for bitflip, timed repetitions for slow, and so on. `metrics` are those of the case's suite.
bool fault_hits_case(const FaultSpec& fault, const Case& c, const std::vector<results::MetricSpec>& metrics);

/// Throws Error(usage) for a target that is no injection point of any suite of this build.
void check_targets(const std::vector<FaultSpec>& faults, const std::vector<std::unique_ptr<Suite>>& suites);

/// Throws Error(usage) naming the first fault that nothing planned matches. Pure, equal on all ranks.
void check_faults(const std::vector<FaultSpec>& faults, const Plan& plan, const Topology& topology,
                  const std::vector<std::unique_ptr<Suite>>& suites);

}  // namespace assay
