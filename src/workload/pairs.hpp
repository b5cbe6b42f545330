// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace assay::workload {

struct Pair {
  int a = 0, b = 0;
  friend bool operator==(const Pair&, const Pair&) = default;
};
/// Disjoint pairs: no rank is in two of them.
using Round = std::vector<Pair>;

/// The partner of `rank` in a round, or -1.
inline int partner_of(const Round& round, int rank) noexcept {
  for (const Pair& pair : round) {
    if (pair.a == rank) return pair.b;
    if (pair.b == rank) return pair.a;
  }
  return -1;
}

}  // namespace assay::workload
