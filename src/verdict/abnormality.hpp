// SPDX-License-Identifier: Apache-2.0
// Abnormality: outliers of a population at two levels of proof. A warning assumes a normal population, with a
// guard that estimates the tail from its fast side. A fault must hold also if healthy parts spread like
// Student's t with 4 degrees of freedom, because 64 values cannot exclude that.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "measure/spread_prior.hpp"
#include "verdict/skew.hpp"

namespace assay::verdict {

struct Abnormality {
  std::vector<double> score;  ///< in robust deviations, negative is slow
  std::vector<double> p;  ///< that a given healthy member of a normal population lies as far out or farther
  std::size_t size = 0;
  double tail = 1;      ///< heaviness of the fast tail, not below 1
  double peaked = 0;    ///< log of the kurtosis of those that are not slow; 0 for fewer than 6
  double variance = 0;  ///< of those that are not slow, combined as `moderated`; 0 for fewer than 3
  double real = 1;  ///< part of the deviation that is the parts' own, not the noise of their medians: only
                    ///< that may be heavy-tailed
  Skew skew;        ///< its own
  Skew told;        ///< what other metrics may take of it: also without its slowest part
  Skew shared;      ///< of the metrics of its suite together
  /// As p, with a spread combined with other metrics (`moderate`), and its degrees of freedom; empty without.
  std::vector<double> moderated;
  double degrees = 0;
};

/// Estimates heavy tails from all populations of a run; one population of 12 is not enough.
class TailPool {
 public:
  /// A population of `n`, its `peaked` and its `real`: noise that is mixed in makes tails look light that are
  /// not. Correlated metrics are added once.
  void add(std::size_t n, double peaked, double real = 1);
  /// Factor by which the error under heavy tails may be exceeded, because populations as light as these occur
  /// under Student's t with 4 degrees only with probability q: q^(-3/4) / 4, whose mean under those is 1 (a
  /// calibrator of p-values, Shafer et al. 2011). Not under 1.
  double gain() const noexcept;

 private:
  double sum_ = 0;
  std::size_t populations_ = 0;
};

/// 48 and more: robust predictive deviation; 4 to 47: deletion t (p of removed members, 1 for the others);
/// fewer: none. `noise`: standard error of the values, 0 if unknown.
Abnormality abnormality(std::span<const double> values, double noise = 0, const Skew& shared = {});

/// Under 48: takes the spread of the members from theirs and a prior. surely_abnormal goes by it from then
/// on.
void moderate(Abnormality& a, std::span<const double> values, const SpreadPrior& prior);

/// Whether a member is abnormal with a family-wise error `alpha` if its population is normal.
bool abnormal(const Abnormality& a, std::size_t member, double alpha);
/// The same if it may be heavy-tailed. `trust`: the power of the pool's gain that counts, 0 to 1.
bool surely_abnormal(const Abnormality& a, std::size_t member, double alpha, const TailPool& pool,
                     double trust = 1);
/// How far light tails of the run may be relied on for a fault of `delta` (logarithmic): in full where it is
/// `light_delta` deviations of the parts or more, not at all below `heavy_delta`. What looks like a normal
/// distribution may have a part with heavy tails in it, whose extremes pass delta where parts differ much.
double trust_in_tails(const Abnormality& a, double delta) noexcept;
/// The same for what many correlated metrics have in common (`story_degrees`).
bool surely_abnormal_story(const Abnormality& a, std::size_t member, double alpha);
/// Share of the error budget of faults that this population may spend by itself: all where its members are
/// alike, less the more they differ.
double fault_share(const Abnormality& a) noexcept;
/// P(a given healthy member lies as far out or farther) if the population may be heavy-tailed: the least
/// alpha at which it is surely_abnormal, over the members. Not under 1e-9.
double heavy_p(const Abnormality& a, std::size_t member);
/// Whether two metrics of the same members (scores in the same order) are correlated: members that are not
/// slow have correlated ranks, or are far out alike. At most 2000 of them are looked at.
bool alike(std::span<const double> a, std::span<const double> b);
/// p times the population's size, at most 1.
double family_p(const Abnormality& a, std::size_t member);

/// The critical distance of surely_abnormal for a population of n >= 48, in robust deviations: that of
/// Student's t with 4 (or other) degrees, wider for a fast `tail` that few populations of 4 degrees have.
double heavy_critical(std::size_t n, double alpha, double tail, double degrees = 4);
/// The p (family-wise, normal) that a deletion t must be under so that the error is `alpha` under Student's t
/// with 4 degrees of freedom; 4 <= n < 48.
double heavy_deletion_p(std::size_t n, double alpha);

}  // namespace assay::verdict
