// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

namespace assay {

/// Where the shortest interval that holds `count` of the sorted values begins; 1 <= count <= their number.
inline std::size_t shortest_interval(std::span<const double> sorted, std::size_t count) noexcept {
  const auto length = [&](std::size_t i) { return sorted[i + count - 1] - sorted[i]; };
  std::size_t at = 0;
  for (std::size_t i = 1; i + count <= sorted.size(); ++i)
    if (length(i) < length(at)) at = i;
  return at;
}

}  // namespace assay
