// SPDX-License-Identifier: Apache-2.0
// The commands that work on results files: no MPI, no device.
#pragma once

#include "base/exit_code.hpp"
#include "cli/command.hpp"
#include "report/report.hpp"

namespace assay::cli {

/// --color and --no-color of commands that print for people.
report::Style style_of(const OptionValues& values);
/// Refuses to replace the input by an output made from it, and what cannot be written.
void check_output(const std::string& option, const std::string& file, const std::string& input);

ExitCode inspect_command(const Parsed& parsed);
ExitCode verdict_command(const Parsed& parsed);
ExitCode export_command(const Parsed& parsed);
ExitCode schema_command(const Parsed& parsed);
ExitCode recover_command(const Parsed& parsed);

}  // namespace assay::cli
