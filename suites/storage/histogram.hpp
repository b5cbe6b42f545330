// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace assay::storage {

/// Counts times in buckets whose bounds grow by a constant factor, 44 to a factor of two, so that a quantile
/// is right to 1.6 %.
class LatencyHistogram {
 public:
  static constexpr int per_octave = 44;
  static constexpr double least_s = 1e-7;          ///< what is shorter counts as this
  static constexpr int buckets = 33 * per_octave;  ///< up to 850 s

  LatencyHistogram() : counts_(buckets, 0) {}
  void add(double seconds) noexcept;
  /// The upper bound of the bucket that holds the quantile q in (0, 1]; NaN where nothing was counted.
  double quantile(double q) const;
  std::uint64_t count() const noexcept { return total_; }
  static double lower(int bucket);

  /// For the file: bounds of octaves are enough there.
  std::vector<std::uint64_t> by_octave() const;

 private:
  std::vector<std::uint64_t> counts_;
  std::uint64_t total_ = 0;
};

}  // namespace assay::storage
