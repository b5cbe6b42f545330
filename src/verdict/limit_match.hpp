// SPDX-License-Identifier: Apache-2.0
// The measured rows that a [[limit]] matches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>

#include "verdict/judgement.hpp"
#include "verdict/limits.hpp"

namespace assay::verdict {

class LimitMatch {
 public:
  explicit LimitMatch(const Judgement& j);
  bool series(const Limit& limit, const Series& s) const;
  /// `device` of the limit: a glob on the name of the part, its node, or the model of either.
  bool row(const Limit& limit, const SeriesRow& row) const;
  /// By name alone.
  bool names(const Limit& limit, const SeriesRow& row) const;
  /// What a bound is held against: the median. The samples of a count may be readings of one counter, so for
  /// a max it is the highest of these.
  static double held(const Series& s, const SeriesRow& row, bool is_min) noexcept {
    return s.unit == "count" && !is_min ? row.highest : row.median;
  }

 private:
  const Judgement& j_;
  std::unordered_map<std::int32_t, std::string> models_;
};

/// Whether a bound is met (yes|open|no), by the number of its limit in the file, that of the series, and
/// whether it is a min.
using MetBounds = std::map<std::tuple<std::size_t, std::size_t, bool>, std::string>;

/// Holds every measured value against the limits, and tells which bounds are met before what they found is
/// joined with other findings or explained by them (judge_limits.cpp).
MetBounds judge_bounds(Judgement& j);

}  // namespace assay::verdict
