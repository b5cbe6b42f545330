// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "config/config.hpp"
#include "results/writer.hpp"
#include "run/planner.hpp"
#include "topology/entities.hpp"

namespace assay {

/// A drawn seed can be given back as --seed, which takes signed numbers.
std::uint64_t seed_of(const Config& config);

/// Content of a results file before the first case. `environment`: keys and values of the first node.
results::Writer::Start start_of_file(const Config& config, const Plan& plan, const Topology& topology,
                                     const EntityTable& entities,
                                     const std::vector<std::pair<std::string, std::string>>& environment);

}  // namespace assay
