// SPDX-License-Identifier: Apache-2.0
// Commands on files that are not trusted. The files themselves are read one level below
// (base/confined.hpp).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/exit_code.hpp"

namespace assay::cli {

/// Runs `command`, which reads the files and directories `inputs`, in a child process with bounded memory and
/// processor time: what they hold may be honest in form and still take for ever to judge. Then this throws
/// Error(data) with one line that names them. Otherwise the child has said all that there is to say, and its
/// exit code comes back. `command` tells its own errors. `weight`: how many times the work of a results file
/// of its size a file may make, of text whose every line may become a case.
ExitCode confined(const std::vector<std::string>& inputs, const std::function<ExitCode()>& command,
                  unsigned weight = 1);

}  // namespace assay::cli
