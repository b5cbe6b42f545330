// SPDX-License-Identifier: Apache-2.0
// Snapshots from a reading process (results/archive.hpp): what a reference needs of a file, instead of all
// its samples.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/input_file.hpp"
#include "verdict/history_index.hpp"

namespace assay::verdict {

/// What `read` makes of `file` in a process of its own. Throws Error(data) as `read` does, and when what
/// arrives does not hold together.
std::vector<IndexedRun> runs_read_confined(
    const std::string& file, const std::function<std::vector<IndexedRun>(const InputFile&)>& read);

}  // namespace assay::verdict
