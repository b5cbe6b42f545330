// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "suite/suite.hpp"
#include "suites/storage/site.hpp"

namespace assay::storage {

/// Each rank writes its share of a model's state, syncs and renames it; another rank, of the next node where
/// the path is shared, restores it. Then training steps run while checkpoints are written.
void run_checkpoint(const Case& c, Context& context, const Site& site);

/// A model of MLPerf Storage's checkpointing benchmark.
struct Model {
  const char* name;
  double state_bytes;  ///< weights and optimizer
  int ranks;           ///< that it is defined for
  std::uint64_t share() const noexcept { return static_cast<std::uint64_t>(state_bytes / ranks); }
};
/// The largest model that is defined for at most this many ranks, or the smallest.
const Model& model_for(int ranks) noexcept;

/// Bytes of the state of one of `ranks` ranks of a node with so much free memory: a fourth of its share,
/// since it is held twice, to be written and as it was read.
constexpr std::uint64_t state_limit(std::uint64_t free_bytes, int ranks) noexcept {
  return free_bytes / (4 * static_cast<std::uint64_t>(ranks));
}

}  // namespace assay::storage
