// SPDX-License-Identifier: Apache-2.0
// What is measured when the user says nothing, and what the options make of it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "topology/topology.hpp"

namespace assay::p2p {

inline constexpr std::size_t kib = 1024, mib = 1024 * 1024;

/// Copies between the GPUs of a node, by copy engines (cuda) or by a kernel (cuda-sm).
inline bool copies_between_peers(const std::string& transport) {
  return transport == "cuda" || transport == "cuda-sm";
}

/// Ascending.
std::vector<std::size_t> wanted_sizes(const Config& config, const Topology& topology);

/// The first one carries what a level requires.
std::vector<std::string> wanted_transports(const Config& config, const Topology& topology);

/// NICs to be measured by themselves.
std::vector<std::string> wanted_nics(const Config& config, const Topology& topology);

}  // namespace assay::p2p
