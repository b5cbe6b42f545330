// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "suite/suite.hpp"
#include "suites/storage/site.hpp"

namespace assay::storage {

/// All ranks of all nodes at once: a file per rank ("easy"), or records of 47,008 bytes that alternate in one
/// file ("hard"). What is read was written by a rank of another node, where there are several.
void run_shared(const Case& c, Context& context, const Site& site);

}  // namespace assay::storage
