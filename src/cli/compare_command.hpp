// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/exit_code.hpp"
#include "cli/command.hpp"

namespace assay::cli {

/// `assay compare A B`: exit 0 SAME or FASTER, 1 SLOWER, 3 AMBIGUOUS or too few nodes.
ExitCode compare_command(const Parsed& parsed);

}  // namespace assay::cli
