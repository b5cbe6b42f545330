// SPDX-License-Identifier: Apache-2.0
#include "suites/storage/histogram.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace assay::storage {

void LatencyHistogram::add(double seconds) noexcept {
  const double octaves = std::log2(std::max(seconds, least_s) / least_s);
  ++counts_[static_cast<std::size_t>(std::clamp(static_cast<int>(octaves * per_octave), 0, buckets - 1))];
  ++total_;
}

double LatencyHistogram::lower(int bucket) {
  return least_s * std::exp2(static_cast<double>(bucket) / per_octave);
}

double LatencyHistogram::quantile(double q) const {
  if (total_ == 0) return std::numeric_limits<double>::quiet_NaN();
  const auto wanted = static_cast<std::uint64_t>(std::ceil(q * static_cast<double>(total_)));
  std::uint64_t seen = 0;
  for (int bucket = 0; bucket < buckets; ++bucket) {
    seen += counts_[static_cast<std::size_t>(bucket)];
    if (seen >= std::max<std::uint64_t>(wanted, 1)) return lower(bucket + 1);
  }
  return lower(buckets);
}

std::vector<std::uint64_t> LatencyHistogram::by_octave() const {
  std::vector<std::uint64_t> out(buckets / per_octave, 0);
  for (std::size_t bucket = 0; bucket < counts_.size(); ++bucket) out[bucket / per_octave] += counts_[bucket];
  return out;
}

}  // namespace assay::storage
