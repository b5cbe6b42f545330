// SPDX-License-Identifier: Apache-2.0
// What a plan must know of the kind of device before anything ran on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "device/device.hpp"
#include "topology/topology.hpp"

namespace assay::gemm {

struct Profile {
  std::vector<NumType> types;     ///< the default types, the cheapest first
  double share = 1;               ///< cores of the slowest rank, or GPUs
  std::uint64_t cache_bytes = 0;  ///< the matrices of a rank must exceed it
  bool gpu = false;
  std::set<std::string> computes = {};  ///< capabilities of the GPUs that are measured, "8.0"

  /// Why this device has no such type; empty: it has.
  std::string lacks(NumType type) const;
  /// FLOP/s that a slow device of the kind still reaches; sizes are chosen by it, real ones are faster by
  /// `optimism`.
  double slow_flops(NumType type) const;
  static constexpr double optimism = 4;
  std::vector<std::size_t> sizes(Level level) const;
};
Profile profile_of(const Topology& topology, Level level);

}  // namespace assay::gemm
