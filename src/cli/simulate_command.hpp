// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/exit_code.hpp"
#include "cli/command.hpp"

namespace assay::cli {

CommandSpec simulate_command_spec(const Suites& suites);

/// `assay simulate`: a synthetic cluster, screened, confirmed, judged and stored like a real run.
ExitCode simulate_command(const Parsed& parsed, const std::string& command_line, const Suites& suites);

}  // namespace assay::cli
