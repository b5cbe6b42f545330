// SPDX-License-Identifier: Apache-2.0
// How much of an operation a timed batch holds: decided by what a probe meets, not by what was hoped for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace assay {

/// One batch: `repetitions` of an operation on `bytes`.
struct Portion {
  std::size_t bytes = 0;
  std::uint64_t repetitions = 1;
  friend bool operator==(const Portion&, const Portion&) = default;
};

/// Climbs from a small batch to the wanted one, each step at most four times the one before, and stays where
/// the next step would take longer than a batch may. A part that is a thousand times too slow so meets a
/// batch that it can end, and one that is as fast as expected is at the wanted batch after a third of its
/// work. Pure: who measures calls `took` with the time of `next()`, until there is no next one. Ranks that
/// decide together pass the same times.
class Sizing {
 public:
  static constexpr std::size_t first_bytes = 2048;
  static constexpr double growth = 4;
  /// A step that looks too slow is tried so often: a moment in which the core was away is not a slow part.
  static constexpr int tries = 3;
  /// A step that takes no longer does not end the climb, whatever the share: delayed acknowledgements of TCP
  /// (40 ms) and ranks that take turns on a core (time slices) make small batches slow that a larger one does
  /// not multiply.
  static constexpr double noise_s = 0.05;

  /// A step that overruns its share is kept all the same while more than this part of the step before was a
  /// fixed cost (a stall, a set-up) by the line through both: a rate taken from that one would be far too
  /// low.
  static constexpr double fixed_part = 1.0 / 3;
  /// It may overrun by no more than this factor.
  static constexpr double overrun = 4;

  /// `share_s` is what a batch may take, `patience_s` what the climb may take in all.
  Sizing(Portion wanted, double share_s, double patience_s) noexcept;

  bool done() const noexcept { return done_; }
  Portion next() const noexcept { return next_; }
  void took(double seconds) noexcept;

  /// The batch to measure with: the wanted one, or the largest one met that keeps its share (see
  /// `fixed_part`); at least the first step.
  Portion fitted() const noexcept { return fitted_; }
  /// What it takes, by the shortest try.
  double seconds() const noexcept { return seconds_; }
  bool full_size() const noexcept { return fitted_.bytes == wanted_.bytes; }

 private:
  void stay() noexcept;

  Portion wanted_, next_, fitted_;
  Portion kept_;  ///< the step before
  double share_s_, patience_s_;
  double kept_s_ = 0;  ///< what it takes
  double spent_s_ = 0, best_s_ = std::numeric_limits<double>::infinity(), seconds_ = 0;
  int tried_ = 0;
  bool done_ = false;
};

/// The size to multiply with where products of n/`size_probe_divisor` take `probe_s`: n, or where one of
/// those would take more than `size_patience` times `share_s` the largest of n/2 and n/4 that keeps it, at
/// least n/4.
std::size_t fitted_size(std::size_t n, double probe_s, double share_s) noexcept;
inline constexpr std::size_t size_probe_divisor = 4;
inline constexpr double size_patience = 4;

/// The part of a region that sweeps of `bytes_per_byte` in all get through in `share_s` at `rate` B/s: whole
/// 2 MiB, at least 2 MiB.
std::uint64_t fitted_region(std::uint64_t region, double rate, double bytes_per_byte,
                            double share_s) noexcept;

/// Of `most` equal parts, those that take no more than `share_s` at `part_s` each, at least one.
std::size_t fitted_count(std::size_t most, double part_s, double share_s) noexcept;

}  // namespace assay
