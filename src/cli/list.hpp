// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/command.hpp"

namespace assay::cli {

/// `assay list [WHAT]`: one part, or all of them when `what` is empty.
std::string list_text(const std::vector<CommandSpec>& commands, const Suites& suites,
                      const std::string& what);

}  // namespace assay::cli
