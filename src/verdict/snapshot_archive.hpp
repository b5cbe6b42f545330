// SPDX-License-Identifier: Apache-2.0
// Snapshots from a reading process (results/archive.hpp) instead of all samples of a file.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/input_file.hpp"
#include "verdict/history_index.hpp"

namespace assay::verdict {

/// Result of `read` of `file` in a child process. Throws Error(data) as `read` does, and for inconsistent
/// data.
std::vector<IndexedRun> runs_read_confined(
    const std::string& file, const std::function<std::vector<IndexedRun>(const InputFile&)>& read);

}  // namespace assay::verdict
