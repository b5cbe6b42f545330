// SPDX-License-Identifier: Apache-2.0
// Whether ranks that must hold the same bits do, and who does not.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "suite/suite.hpp"
#include "suites/train/vote.hpp"

namespace assay::train {

/// What a check found.
struct Outcome {
  int mine = 0;          ///< digests of this rank that were wrong
  bool lasting = false;  ///< ranks still differ after the repetition: training cannot go on
};

/// Who must have the same bits as this rank.
enum class Alike {
  all,  ///< what was summed over all ranks, and the same update of it, which has no order of summation
  equal_devices  ///< products and sums: another processor, library or number of threads rounds by right
};

/// Compares digests over ranks, and repeats what made them where they differ.
class Trust {
 public:
  /// Collective for Alike::equal_devices.
  Trust(Context& context, Alike alike);

  /// Collective. `all` are the digests of all ranks, [rank][column], of what step `step` made;
  /// `names[column]` says of what. Where they differ, all ranks call `repeat`, which makes them again from
  /// the state before and returns this rank's digests [column]. Who differed from the majority, or without
  /// one from his own repetition, has a miscompare (index = step * columns
  /// + column; reread = the repeated digest) and an event that names rank, step, column, and whether the
  /// fault was transient (right when repeated) or persistent. A rank that nobody is like cannot
  /// differ: with `alone`, it repeats always.
  Outcome check(int step, const std::vector<std::uint64_t>& all, const std::vector<std::string>& names,
                bool alone, const std::function<std::vector<std::uint64_t>()>& repeat);

  /// Collective: the digests of all ranks, [rank][column].
  std::vector<std::uint64_t> gather(const std::vector<std::uint64_t>& mine) const;

 private:
  void add_wrong(int step, std::size_t column, const std::vector<std::string>& names, std::uint64_t expected,
                 std::uint64_t seen, std::uint64_t repeated);

  /// Among the ranks of each kind.
  std::vector<Dissent> votes(const std::vector<std::uint64_t>& all, std::size_t columns) const;
  /// Ranks that nobody is like: each against its own repetition.
  void add_unsteady(const std::vector<std::uint64_t>& all, const std::vector<std::uint64_t>& again,
                    std::size_t columns, std::vector<Dissent>& dissents) const;
  bool changed(const std::vector<std::uint64_t>& all, const std::vector<std::uint64_t>& again,
               std::size_t columns, const Dissent& tied) const;

  Context& context_;
  std::vector<std::vector<int>> kinds_;  ///< ranks that must have the same bits
};

}  // namespace assay::train
