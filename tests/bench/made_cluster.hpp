// SPDX-License-Identifier: Apache-2.0
// A made cluster for benchmarks: what its ranks tell of themselves, and the configuration of a run on it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "suite/suite.hpp"

namespace assay::bench {

inline constexpr int local_ranks = 8;

std::vector<int> range(int begin, int count, int step = 1);

/// node09980 and so on: names with and without a leading zero in a cluster of 64 nodes, too.
std::string node_name(int node);

/// What discovery gathers from the ranks of `nodes` nodes. `gpus`: each rank measures with a GPU of its own
/// and sees those of all ranks of its node.
struct Gathered {
  std::vector<std::string> nodes, places;
};
Gathered gathered(int nodes, bool gpus = false);

/// What the ranks tell of their GPUs before: each sees those of its node.
std::vector<std::string> offered(int nodes);

/// `cases`: globs; empty: all. `more`: options of suites.
Config made_config(const std::vector<std::unique_ptr<Suite>>& suites, const std::string& level,
                   const std::string& out, const std::string& cases = "",
                   const std::map<std::string, std::string>& more = {});

}  // namespace assay::bench
