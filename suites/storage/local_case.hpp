// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "suite/suite.hpp"
#include "suites/storage/site.hpp"

namespace assay::storage {

/// All ranks of a node write or read files of their own in one directory, block after block, from and to the
/// memory of their host or of their GPU.
void run_sequential(const Case& c, Context& context, Site& site);

}  // namespace assay::storage
