// SPDX-License-Identifier: Apache-2.0
// Clients of a file system of which nothing counts what meets the storage: no rate is proven there, and the
// verdict compares none.
#pragma once

#include <string>
#include <vector>

#include "suite/suite.hpp"

namespace assay::storage {

/// Caches may explain so much between clients that do the same.
inline constexpr double uncounted_factor = 3;

/// The places of rates that are less than 1 / uncounted_factor of the median of the others. NaN: no rate.
std::vector<std::size_t> slow_clients(const std::vector<double>& rates);

/// Collective over the first ranks of all nodes: a WARN finding for a node that is so slow. `row` is that of
/// the node, null where it has none; it is compared where nothing counts, and the page cache did not answer.
void tell_slow_client(const CaseRecord::Row* row, const std::string& where, const Case& c, Context& context);

}  // namespace assay::storage
