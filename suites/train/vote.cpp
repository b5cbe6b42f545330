// SPDX-License-Identifier: Apache-2.0
#include "suites/train/vote.hpp"

namespace assay::train {

std::vector<Dissent> vote(std::span<const std::uint64_t> digests, std::size_t columns) {
  std::vector<Dissent> dissents;
  if (columns == 0) return dissents;
  const std::size_t ranks = digests.size() / columns;
  for (std::size_t column = 0; column < columns; ++column) {
    const auto at = [&](std::size_t rank) { return digests[rank * columns + column]; };
    // Boyer and Moore: the only value that can have a majority, in one pass.
    std::uint64_t candidate = 0;
    std::size_t lead = 0, votes = 0;
    for (std::size_t r = 0; r < ranks; ++r) {
      if (lead == 0) candidate = at(r);
      lead = at(r) == candidate ? lead + 1 : lead - 1;
    }
    for (std::size_t r = 0; r < ranks; ++r) votes += at(r) == candidate;
    if (votes == ranks) continue;
    const bool tied = 2 * votes <= ranks;
    for (std::size_t r = 0; r < ranks; ++r)
      if (tied || at(r) != candidate)
        dissents.push_back({column, static_cast<int>(r), at(r), tied ? 0 : candidate, tied});
  }
  return dissents;
}

}  // namespace assay::train
