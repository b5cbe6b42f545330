// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "suite/suite.hpp"
#include "suites/storage/site.hpp"

namespace assay::storage {

/// All ranks of a node write or read a file of their own in each of its local directories, all at once: what
/// the disks share (controller, backplane, PCIe switch) shows beside their rates alone.
void run_together(const Case& c, Context& context, const Site& site);

}  // namespace assay::storage
