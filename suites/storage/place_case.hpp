// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "suite/suite.hpp"
#include "suites/storage/place.hpp"
#include "suites/storage/site.hpp"

namespace assay::storage {

/// For a node that cannot look at its place: the others gather what they see.
void leave_place(const Case& c, Context& context);
/// Mount and disks of a path on each node: before the other cases, and after them with what the disks' error
/// counters have gone up by.
void run_place(const Case& c, Context& context, Site& site);

/// Of the disks that tell it; NaN where none does.
double greatest(const std::vector<Disk>& disks, double DiskHealth::*value);

/// The description that more than half of all are; empty where there is none.
std::string usual_one(const std::vector<std::string>& descriptions);

}  // namespace assay::storage
