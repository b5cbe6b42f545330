// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "results/model.hpp"

namespace assay::results {

/// Reads NAME.h5 or a NAME.h5.partial directory. Untrusted input: sizes are checked against the file before
/// anything is allocated. Throws Error(data) with one line naming the file and what is wrong with it.
Results load(const std::filesystem::path& path);

}  // namespace assay::results
