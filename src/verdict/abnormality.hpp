// SPDX-License-Identifier: Apache-2.0
// The claim of abnormality: who does not belong to a population, at two levels of proof. A warning takes the population for
// normal, with a guard that reads the tail off its fast side. A fault must hold even where healthy parts spread like Student's
// t with 4 degrees of freedom, because nobody can see from 64 values that they do not.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace assay::verdict {

struct Abnormality {
  std::vector<double> score;  ///< in robust deviations, negative is slow
  std::vector<double> p;      ///< that a given healthy member of a normal population lies as far out or farther
  std::size_t size = 0;
  double tail = 1;  ///< heaviness of the fast tail, not below 1
  double real = 1;  ///< part of the deviation that is the parts' own, not the noise of their medians: only that may be heavy-tailed
};

/// How heavy fast tails are, over all populations of a run: what one of 64 cannot tell, thirty together can.
struct TailPool {
  double sum = 0, count = 0;  ///< of ratios weighted by the values they rest on
  void add(std::size_t n, double ratio);
  bool surely_light() const noexcept;
};

/// 24 and more: robust predictive deviation; 4 to 23: deletion t (p of those it peels, 1 for the others); fewer: nobody. `noise`:
/// standard error of the values, 0 if unknown.
Abnormality abnormality(std::span<const double> values, double noise = 0);

/// Whether a member is abnormal with a family-wise error `alpha` if its population is normal.
bool abnormal(const Abnormality& a, std::size_t member, double alpha);
/// The same if it may be heavy-tailed.
bool surely_abnormal(const Abnormality& a, std::size_t member, double alpha, const TailPool& pool);
/// P(a given healthy member lies as far out or farther) if the population may be heavy-tailed: the least alpha at which it is
/// surely_abnormal, over the members. Not under 1e-9.
double heavy_p(const Abnormality& a, std::size_t member, const TailPool& pool);
/// Whether two metrics of the same members (scores in the same order) tell the same story: those that are not slow are ranked
/// alike, or lie far out alike. At most 2000 of them are looked at.
bool alike(std::span<const double> a, std::span<const double> b);
/// p times the population's size, at most 1.
double family_p(const Abnormality& a, std::size_t member);

/// The critical distance of surely_abnormal for a population of n >= 24, in robust deviations.
double heavy_critical(std::size_t n, double alpha, double tail, bool light);
/// The p (family-wise, normal) that a deletion t must be under so that the error is `alpha` under Student's t with 4
/// degrees of freedom; 4 <= n < 24.
double heavy_deletion_p(std::size_t n, double alpha);

}  // namespace assay::verdict
