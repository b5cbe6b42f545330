// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "config/config.hpp"

namespace assay {

/// The command line that measures the cases missing after a loss of nodes: the run's options without those
/// nodes, resuming `file`. Without the launcher's command line, which is unknown. Quoted for a shell. `specs`
/// are the options of the program and of its suites.
std::string relaunch_line(const Config& config, const std::vector<OptionSpec>& specs,
                          const std::set<std::string>& lost_nodes, const std::string& file);

}  // namespace assay
