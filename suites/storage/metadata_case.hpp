// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "suite/suite.hpp"
#include "suites/storage/site.hpp"

namespace assay::storage {

/// Small files: created with 3901 bytes, asked for, read, renamed and deleted, round after round, in a
/// directory of each rank or in one of all. What is asked for and read is another rank's, on another node
/// where there are several.
void run_metadata(const Case& c, Context& context, const Site& site);

}  // namespace assay::storage
