// SPDX-License-Identifier: Apache-2.0
// Operating curves: how often the verdict does what it should, counted over simulated runs whose truth is
// known.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace assay::operating {

/// Out of `trials`, `hits`.
struct Count {
  std::size_t hits = 0, trials = 0;
  double share() const noexcept {
    return trials == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(trials);
  }
};

/// 95 % bounds of the true share (Clopper and Pearson 1934), one-sided each.
double lower_bound(const Count& count);
double upper_bound(const Count& count);

/// What a share must be.
enum class Aim { at_most, at_least, between };

struct Cell {
  std::string group, name;  ///< rows of one group stand together
  Aim aim = Aim::at_least;
  double target = 0, target_high = 1;  ///< the second for `between`
  std::size_t runs = 100;
  /// One simulated run; a pure function of the seed.
  std::function<Count(std::uint64_t seed)> trial;
  /// What the tests hold the verdict to, where it was not seen to meet the target by three standard errors:
  /// what was seen, less three of them. Without: the target.
  std::optional<double> held_to = std::nullopt;
};

struct Result {
  const Cell* cell = nullptr;
  Count count;
  bool met() const noexcept;
  /// By three standard errors (with half a miss and half a hit more than were seen, so that none of few is no
  /// certainty).
  bool met_clearly() const noexcept;
  /// Whether so many trials could show at all, all of them wrong, what the tests do not let pass.
  bool could_fail() const;
  /// Whether they do: the bound excludes the target, or what it is held to instead.
  bool failed() const;
};

/// Every cell over the seeds first_seed .. first_seed + runs - 1, on `threads` threads. `scale` shortens (or
/// lengthens) the number of runs; at least `least` are made.
std::vector<Result> measure(const std::vector<Cell>& cells, double scale, unsigned threads,
                            std::uint64_t first_seed, std::size_t least = 1);

/// A row of the table for people.
std::string row_of(const Result& result);
std::string table_head();

// The cells, by what they ask. `groups` of the command line select from them by glob.
std::vector<Cell> healthy_cells();
std::vector<Cell> family_cells();
std::vector<Cell> group_cells();
std::vector<Cell> lasting_cells();
std::vector<Cell> recall_cells();
std::vector<Cell> network_cells();
std::vector<Cell> history_cells();
std::vector<Cell> comparison_cells();
std::vector<Cell> visible_cells();
std::vector<Cell> dips_cells();
std::vector<Cell> all_cells();

}  // namespace assay::operating
