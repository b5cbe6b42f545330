// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "results/model.hpp"

namespace assay::results {

/// Writes results that are complete in memory, verdict included, behind the same lock as a run, but without a
/// file per case: NAME.h5 appears whole or not at all, and nothing is left behind when it cannot. Throws
/// Error(usage) in one line when the file exists (without `force`) or cannot be made, Error(io) when the disk
/// refuses.
void save(const Results& results, const std::filesystem::path& file, bool force);

}  // namespace assay::results
