// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "config/config.hpp"

namespace assay {

/// What to type to measure what a run could not because nodes went missing: its own options, those nodes
/// excluded, and what it has measured taken over from `file`. Without the launcher, whose command line nobody
/// knows. Quoted for a shell. `specs` are the options of the program and of its suites.
std::string relaunch_line(const Config& config, const std::vector<OptionSpec>& specs,
                          const std::set<std::string>& lost_nodes, const std::string& file);

}  // namespace assay
