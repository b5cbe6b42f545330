// SPDX-License-Identifier: Apache-2.0
// Entities that must be equally fast: one metric of one case and one stratum of it, without known structure.
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
  bool apart = false;  ///< both sides may be healthy, and each is judged by itself; else the low side is held
                       ///< against the high one
  bool by_clock = false;  ///< of the rates: the residuals, without the clock, are those of one population
  Split split;            ///< of the residuals
  double deficit = 0;     ///< of the low side's median against the high side's
  std::string attribute, value;  ///< what the low side has in common; empty: nothing recorded
  bool place = false;            ///< the attribute is a place (rack, chassis, switch): a hint, no excuse
  std::size_t with_low = 0, with_high = 0;  ///< how many of either side have that value
  double p = 1;                             ///< of the explanation, Fisher, times the explanations tried
  bool explained() const noexcept { return !attribute.empty() && !place; }
  bool fast() const noexcept { return split.low > split.high; }  ///< a minority is faster
};

struct Population {
  const Series* series = nullptr;
  std::int32_t stratum = 0;
  std::vector<Member> members;                      ///< by row of /entities
  double centre = 0;                                ///< rate of the bulk, never of a minority
  double side_rate[2] = {}, side_residual[2] = {};  ///< references of members of the high and of the low side
  double centre_clock = 0;
  double se =
      0;  ///< standard error of a member's rate, pooled; with too few samples, the spread of the members
  bool noise_known = true;            ///< whether the samples give it
  double typical_n = 1;               ///< samples of a member, their median
  bool shared = false;                ///< ranks take turns on cores
  bool clocked = false;               ///< every member's clock is known
  double slope = 0, slope_error = 0;  ///< of log rate over log clock
  bool slope_known = true;            ///< else it is 1, and what a slope from 0 to 1 explains is no remainder
  double delta_raw = 0, delta = 0;    ///< fractions: on the rate as measured, and on the residual
  SplitFound split;

  std::size_t size() const noexcept { return members.size(); }
  /// The reference log rate of a member, as measured or at equal clock.
  double reference(std::size_t i) const noexcept { return side_rate[members[i].low ? 1 : 0]; }
  double residual_reference(std::size_t i) const noexcept { return side_residual[members[i].low ? 1 : 0]; }
  double deficit(std::size_t i) const noexcept { return reference(i) - members[i].rate; }
  double residual_deficit(std::size_t i) const noexcept {
    return residual_reference(i) - members[i].residual;
  }
  /// Standard error of a member's rate, larger where it has fewer samples than others.
  double se_of(std::size_t i) const noexcept;
  /// Whether the metric was measured precisely enough for its class to fail a part: se <= delta / 4.
  bool eligible() const noexcept;
  /// Whether a (logarithmic) deficit of a member is worth measuring again: the metric is eligible, or the
  /// deficit is far beyond the resolution: what warns at such noise is measured again.
  bool tells(std::size_t i, double deficit) const noexcept;
  /// Resolution: max(delta, 4 se), a fraction.
  double effective_delta() const noexcept;
};

/// Splits a population in two and finds the attribute that the low side has in common.
void find_split(const Judgement& j, Population& p, const std::vector<Attribute>& attributes);
/// The same for fewer than `robust_min` parts, none of which stands out.
void find_split_of_few(const Judgement& j, Population& p);
/// Of what is left beside suspects: such parts were not measured again, so both sides stay open.
void find_split_of_rest(const Judgement& j, Population& p);
/// Finds the references anew, by the sides of the split.
void set_centres(Population& p);
/// Where the clock explains all, and so many are throttled that no part stands out: of the rates.
void find_split_by_clock(const Judgement& j, Population& p);
/// Whether the sides are those of few parts and no farther apart than kinds often are: a note.
bool is_noted_split(const Population& p) noexcept;
/// Members in ascending order of their residuals.
std::vector<std::size_t> ascending(const Population& p);
/// Deviations from which groups of so many parts are apart: those of few parts are by chance.
double least_distance(std::size_t parts, std::size_t groups) noexcept;
/// Rows of /entities of the members.
std::vector<std::int32_t> entities_of(const Population& p);
/// Whether so many slow ones of all, with this deficit (logarithmic), may be another kind of part.
bool may_be_a_kind(std::size_t slow, std::size_t all, double deficit) noexcept;
/// The same of a population, whose members are of one model unless they are imported.
bool may_be_a_kind(const Population& p, std::size_t slow, double deficit) noexcept;
/// Whether so many faster ones of all may be what is left of a fleet whose others slowed down.
bool may_be_all_that_is_sound(std::size_t fast, std::size_t all) noexcept;
/// Whether sides that differ by this (logarithmic) are more than unlabelled kinds of one model: where peers
/// cannot tell which side is right, the verdict is open.
bool too_far_for_kinds(const Population& p, double deficit) noexcept;

/// Whether entities of a series are judged against each other here: a rate that is no collective (whose ranks
/// share one clock), no link (network.hpp) and no inventory.
bool is_population(const Series& s);

/// Which of `peer_groups` a row belongs to. Parts of a stratum that share cores have only each other for
/// peers, unless they take turns: the scheduler decides their rates.
std::size_t peer_group(const Judgement& j, const Series& s, const SeriesRow& row) noexcept;
std::size_t peer_groups(const Series& s) noexcept;
constexpr std::int32_t stratum_of_group(std::size_t group) noexcept {
  return static_cast<std::int32_t>(group / 2);
}
constexpr bool group_shares_cores(std::size_t group) noexcept { return group % 2 == 1; }

/// One population per group of peers; clock and recorded groups taken out, split test done. Those of one
/// member are left out.
std::vector<Population> populations_of(const Judgement& j, const Series& series, AttributeCache& attributes);

/// Log of the rate: higher is better whatever the metric's direction; NaN for values that are no rate.
double log_rate(double value, results::Better better) noexcept;
/// A value of the metric for a log rate.
double from_log_rate(double rate, results::Better better) noexcept;
/// Fraction of the rate that a logarithmic deficit is.
double fraction(double log_deficit) noexcept;
double log_deficit(double fraction) noexcept;

}  // namespace assay::verdict
