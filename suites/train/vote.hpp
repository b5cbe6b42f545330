// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace assay::train {

/// One digest that is not what the others have.
struct Dissent {
  std::size_t column = 0;
  int rank = 0;
  std::uint64_t seen = 0, expected = 0;
  bool tied = false;  ///< no value has a majority: `expected` is 0, and every rank of the column is listed
};

/// Compares digests[rank * columns + column] over ranks, column by column. A value that more than half of the
/// ranks have is right; the others dissent. By column, then rank.
std::vector<Dissent> vote(std::span<const std::uint64_t> digests, std::size_t columns);

}  // namespace assay::train
