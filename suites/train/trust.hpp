// SPDX-License-Identifier: Apache-2.0
// Whether ranks that must hold the same bits do, and who does not.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "suite/suite.hpp"

namespace assay::train {

/// What a check found.
struct Outcome {
  int mine = 0;          ///< digests of this rank that were wrong
  bool lasting = false;  ///< ranks still differ after the repetition: training cannot go on
};

/// Compares digests over ranks, and repeats what made them where they differ.
class Trust {
 public:
  explicit Trust(Context& context) : context_(context) {}

  /// Collective. `all` are the digests of all ranks, [rank][column], of what step `step` made;
  /// `names[column]` says of what. Where they differ, all ranks call `repeat`, which makes them again from
  /// the state before and returns this rank's digests [column]. Who differed from the majority, or without
  /// one from his own repetition, has a miscompare (index = step * columns
  /// + column; reread = the repeated digest) and an event that names rank, step, column, and whether the
  /// fault was transient (right when repeated) or persistent. One rank alone cannot differ: with
  /// `alone`, it repeats always.
  Outcome check(int step, const std::vector<std::uint64_t>& all, const std::vector<std::string>& names,
                bool alone, const std::function<std::vector<std::uint64_t>()>& repeat);

  /// Collective: the digests of all ranks, [rank][column].
  std::vector<std::uint64_t> gather(const std::vector<std::uint64_t>& mine) const;

 private:
  void add_wrong(int step, std::size_t column, const std::vector<std::string>& names, std::uint64_t expected,
                 std::uint64_t seen, std::uint64_t repeated);

  Context& context_;
};

}  // namespace assay::train
