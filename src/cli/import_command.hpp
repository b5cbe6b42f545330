// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/exit_code.hpp"
#include "cli/command.hpp"

namespace assay::cli {

CommandSpec import_command_spec();

/// `assay import`: measurements of other tools into a results file, judged.
ExitCode import_command(const Parsed& parsed, const std::string& command_line);

}  // namespace assay::cli
