// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "base/exit_code.hpp"
#include "cli/command.hpp"

namespace assay::cli {

CommandSpec import_command_spec();

/// `assay import`: measurements of other tools into a results file, judged.
ExitCode import_command(const Parsed& parsed, const std::string& command_line);

/// Runs `import`, the command in a process that may be ended from outside. What it leaves of the results file
/// then is removed.
ExitCode without_rest(const Parsed& parsed, const std::function<ExitCode()>& import);

}  // namespace assay::cli
