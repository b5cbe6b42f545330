// SPDX-License-Identifier: Apache-2.0
// Whether a directory answers at all: the server of a mount may not, for a while or for good, and whoever
// calls it waits.
#pragma once

#include <string>
#include <vector>

namespace assay::storage {

/// For a process that is made for it: opens and lists a directory, asks for its space, makes a directory in
/// it and removes that. What is refused is an answer, too. Closes all files of the process first, since
/// others would wait for their ends as long as it waits.
void touch(const std::string& directory) noexcept;

/// Those that do not answer within `seconds`. A process tries each: one that waits for a server cannot always
/// be ended.
std::vector<std::string> silent_ones(const std::vector<std::string>& directories, double seconds);

}  // namespace assay::storage
