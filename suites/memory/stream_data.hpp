// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "device/device.hpp"
#include "kernels/pattern.hpp"
#include "kernels/stream.hpp"

namespace assay::memory {

/// How arrays are filled.
struct Filling {
  /// For one array: where a device takes longer, all arrays end where the first one was filled to.
  double share_s = std::numeric_limits<double>::infinity();
  std::function<void(double begin_s)> part_done;  ///< of at most 64 MiB, begun at `begin_s`; may be empty
};

/// The arrays of a bandwidth operation, their data, and what its result must be. All values are 50-bit
/// integers stored as doubles, so that b + 3 c is exact with or without a fused multiply-add. Repetitions
/// alternate between two results (a = b + 3 c and a = c + 3 b; a = b and a = c), so that a store that was
/// lost shows, and move through the arrays.
class StreamData {
 public:
  /// `count` doubles per array; `key` seeds the values.
  StreamData(Device& device, kernels::StreamOp op, std::size_t count, std::uint64_t key,
             Filling filling = {});

  std::size_t count() const noexcept { return count_; }
  /// Shorter arrays from now on, at the places of the longer ones. Nothing where they are as short.
  void cut(std::size_t count);

  /// The next repetitions of the rotation, queued one behind the other; complete when it returns.
  void run(std::uint64_t repetitions);
  /// Repetitions of a sample, at most `rotations`: those of one sample then begin at different places.
  void set_passes(std::uint64_t passes) noexcept { passes_ = passes; }
  /// Before a sample, untimed: makes the result array different from what will be written.
  void prepare();

  /// What the last repetition wrote (`read`: read), and `check` looks at.
  std::span<double> result() const;

  struct Check {
    std::uint64_t count = 0;  ///< wrong words
    bool located = true;      ///< false: the digest differed and a word by word search found nothing
    std::vector<kernels::ErrorRecord> first;  ///< index: byte offset in the arena
  };
  /// The result of the last repetition, the whole of it (`read`: the array that was read). Of copy and triad
  /// also the first period of those before it in the sample, which later ones leave: it shows one that stored
  /// nothing. `write` stores one value, by which repetitions cannot be told apart.
  Check check();

 private:
  using Tile = std::vector<double>;
  void queue();
  double* array(std::size_t i) const;
  void fill(double* array, const Tile& tile);
  void digest_expected();
  std::uint64_t periodic_digest(const Tile& tile, std::size_t count) const;
  void part_done(double begin_s) const;
  void settle();
  Check search(const double* from, std::size_t count, const Tile& expected) const;

  Device& device_;
  kernels::StreamOp op_;
  std::size_t count_, stride_bytes_ = 0;
  Filling filling_;
  bool filled_ = false;                 ///< the first array, which decides how long the arrays are
  std::vector<Tile> expected_;          ///< by variant, one period each
  std::vector<std::uint64_t> digests_;  ///< of `count` words of it
  std::uint64_t repetition_ = 0;
  std::uint64_t passes_ = 1;
  std::uint64_t first_ = 0;  ///< repetition of the sample
};

}  // namespace assay::memory
