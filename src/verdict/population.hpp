// SPDX-License-Identifier: Apache-2.0
// Entities that ought to be equally fast: one metric of one case and one stratum of it, with what is structure taken out.
// A deficit here is a difference of natural logarithms, positive is slower: 0.05 is a rate 4.9 % lower.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "measure/robust.hpp"
#include "verdict/judgement.hpp"
#include "verdict/strata.hpp"

namespace assay::verdict {

struct Member {
  const SeriesRow* row = nullptr;
  double rate = 0;      ///< log of the rate (of 1/time where lower is better)
  double residual = 0;  ///< the same without clock and groups: what abnormality is judged by
  double clock = 0;     ///< log Hz; NaN where not recorded
  bool low = false;     ///< on the slow side of a split
};

/// Two populations in one stratum.
struct SplitFound {
  bool found = false;
  Split split;             ///< of the residuals
  double deficit = 0;      ///< of the low side's median against the high side's
  std::string attribute, value;  ///< what explains it; empty: nothing recorded does
  std::size_t with_low = 0, with_high = 0;  ///< how many of either side have that value
  double p = 1;            ///< of the explanation, Fisher, times the explanations tried
};

struct Population {
  const Series* series = nullptr;
  std::int32_t stratum = 0;
  std::vector<Member> members;  ///< by row of /entities
  double centre = 0;            ///< median rate of those that are not slow: the reference of magnitude
  double centre_residual = 0, centre_clock = 0;
  double se = 0;                ///< standard error of a member's rate, pooled
  bool shared = false;          ///< ranks take turns on cores
  bool clocked = false;         ///< every member's clock is known
  double slope = 0, slope_error = 0;  ///< of log rate over log clock
  bool slope_fitted = false;
  double delta_raw = 0, delta = 0;  ///< fractions: on the rate as measured, and on the residual
  SplitFound split;

  std::size_t size() const noexcept { return members.size(); }
  double deficit(std::size_t i) const noexcept { return centre - members[i].rate; }
  double residual_deficit(std::size_t i) const noexcept { return centre_residual - members[i].residual; }
  /// Whether the metric was measured precisely enough for its class to fail anybody: se <= delta / 4.
  bool eligible() const noexcept;
  /// max(delta, 4 se): what can be told apart here, a fraction.
  double effective_delta() const noexcept;
};

/// Whether entities of a series are judged against each other here: a rate that is no collective (whose ranks share one
/// clock), no link (network.hpp) and no inventory.
bool is_population(const Series& s);
/// Ranks that share cores get what the scheduler gives them, unless the case lets them take turns.
bool takes_turns(const Series& s);

/// One population per stratum; clock and recorded groups taken out, split test done. Those of one member are left out.
std::vector<Population> populations_of(const Judgement& j, const Series& series, AttributeCache& attributes);

/// Log of the rate: higher is better whatever the metric's direction; NaN for values that are no rate.
double log_rate(double value, results::Better better) noexcept;
/// A value of the metric for a log rate.
double from_log_rate(double rate, results::Better better) noexcept;
/// Fraction of the rate that a logarithmic deficit is.
double fraction(double log_deficit) noexcept;
double log_deficit(double fraction) noexcept;

}  // namespace assay::verdict
