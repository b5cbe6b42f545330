// SPDX-License-Identifier: Apache-2.0
// The commands that work on results files: no MPI, no device.
#pragma once

#include "base/exit_code.hpp"
#include "cli/command.hpp"

namespace assay::cli {

ExitCode inspect_command(const Parsed& parsed);
ExitCode verdict_command(const Parsed& parsed);
ExitCode export_command(const Parsed& parsed);
ExitCode schema_command(const Parsed& parsed);
ExitCode recover_command(const Parsed& parsed);

}  // namespace assay::cli
