// SPDX-License-Identifier: Apache-2.0
// Reading files that nobody vouches for.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/exit_code.hpp"

namespace assay::cli {

/// Runs `command`, which reads the files and directories `inputs`, in a child process with bounded memory and
/// processor time. The HDF5 library can crash, or go round in circles, on metadata that was forged together
/// with its checksum: then this throws Error(data) with one line that names them. Otherwise the child has
/// said all that there is to say, and its exit code comes back. `command` tells its own errors.
ExitCode confined(const std::vector<std::string>& inputs, const std::function<ExitCode()>& command);

}  // namespace assay::cli
