// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "run/planner.hpp"
#include "suite/suite.hpp"

namespace assay {

/// Prints a line where the required cases need more time than the budget, and one for each limit of --limits
/// and each name of --require that no case of the plan matches: the run would end INCONCLUSIVE.
void warn_of_plan(const Config& config, const Plan& plan, const std::vector<std::unique_ptr<Suite>>& suites);

/// Throws Error(usage) for a name of --require that no suite, case, metric or counter can have. Which cases a
/// suite has depends on the level and the nodes: those of a known suite are let pass.
void check_required(const std::vector<std::string>& required,
                    const std::vector<std::unique_ptr<Suite>>& suites);

}  // namespace assay
