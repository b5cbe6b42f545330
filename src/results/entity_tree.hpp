// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "results/model.hpp"

namespace assay::results {

/// The row of the node above a part, or of itself; -1 where there is none. A file from elsewhere may hold a
/// loop of parents: no chain is followed for more than 64 steps.
inline std::int32_t node_above(const std::vector<Entity>& entities, std::int32_t row) noexcept {
  for (int step = 0; step < 64 && row >= 0 && static_cast<std::size_t>(row) < entities.size(); ++step) {
    const Entity& e = entities[static_cast<std::size_t>(row)];
    if (e.kind == "node") return row;
    row = e.parent;
  }
  return -1;
}

/// The rows of nodes that have ranks: others were lost or left out.
inline std::set<std::int32_t> nodes_with_ranks(const std::vector<Entity>& entities) {
  std::set<std::int32_t> nodes;
  for (const Entity& e : entities)
    if (e.rank >= 0) nodes.insert(node_above(entities, e.parent));
  nodes.erase(-1);
  return nodes;
}

}  // namespace assay::results
