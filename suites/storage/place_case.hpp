// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "suite/suite.hpp"
#include "suites/storage/site.hpp"

namespace assay::storage {

/// Mount and disks of a path on each node: before the other cases, and after them with what the disks' error
/// counters have gone up by.
void run_place(const Case& c, Context& context, Site& site);

/// Which of the descriptions differ from that of more than half of them; none where there is no such
/// majority.
std::vector<std::size_t> odd_ones(const std::vector<std::string>& descriptions);

}  // namespace assay::storage
