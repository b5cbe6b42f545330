// SPDX-License-Identifier: Apache-2.0
// Devices of one node may have more in common than nodes have (power, cooling, placement). Then a population
// of devices holds as many independent values as it has nodes, and its extremes come in groups.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "verdict/abnormality.hpp"

namespace assay::verdict {

struct Nested {
  /// Whether nodes differ by more than their devices explain. False for fewer than 6 nodes of two devices or
  /// more, which do not tell.
  bool tells = false;
  double share = 0;  ///< intraclass correlation: variance of nodes of the whole variance; 0 unless `tells`
  double effective = 0;              ///< independent values: n / (1 + (devices per node - 1) share)
  Abnormality nodes;                 ///< of the nodes' medians
  Abnormality within;                ///< of each value less the median of the others of its node
  std::vector<std::size_t> node_of;  ///< of each value, its place in `nodes`
  std::vector<std::size_t> others;   ///< of each value, how many other values its node has
  std::vector<double> off;           ///< of each value, less the median of the others of its node

  /// Whether this holds for a value's node among nodes, or for the value within its node: what is far out
  /// among all values must be one of these. `holds(Abnormality, place)`. True where nodes do not tell.
  template <typename Predicate>
  bool either(std::size_t value, const Predicate& holds) const {
    return !tells || holds(nodes, node_of[value]) || holds(within, value);
  }
};

/// Median of the values at the places `of`, without the one at `without`.
double median_of_others(std::span<const double> values, const std::vector<std::size_t>& of,
                        std::size_t without);

/// `node`: of each value, any number; negative is none. `noise`: standard error of a value, 0 if unknown.
/// O(n log n).
Nested nested(std::span<const double> values, std::span<const std::int32_t> node, double noise = 0);

}  // namespace assay::verdict
