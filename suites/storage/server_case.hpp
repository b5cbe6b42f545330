// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "suite/suite.hpp"
#include "suites/storage/site.hpp"

namespace assay::storage {

/// Rounds of disjoint pairs (client, server) in which each client meets each server once. Where there are
/// more than `most_alone` clients and fewer servers, several clients share a server at a time, in each round
/// equally many.
using ServerRounds = std::vector<std::vector<std::pair<int, int>>>;
ServerRounds server_rounds(int clients, int servers);
inline constexpr int most_alone = 64;

/// One rank of each node writes a file on each server of a shared file system, and reads it back: a matrix of
/// clients and servers.
void run_servers(const Case& c, Context& context, const Site& site);

}  // namespace assay::storage
