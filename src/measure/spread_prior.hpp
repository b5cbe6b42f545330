// SPDX-License-Identifier: Apache-2.0
// Several populations of the same parts: what their spreads together say of each one.
#pragma once

#include <cstddef>
#include <vector>

namespace assay {

/// A variance, and of how many degrees of freedom it is worth; 0: nothing is known.
struct SpreadPrior {
  double variance = 0, degrees = 0;
};

/// Variances that are themselves spread like variance / (chi-square / degrees): empirical Bayes by the first
/// two moments of their logarithms (Smyth 2004, Statistical Applications in Genetics and Molecular Biology 3,
/// section 6.2).
class SpreadPool {
 public:
  /// A variance above 0 with `degrees` of freedom.
  void add(double variance, double degrees);
  /// Nothing from fewer than `least` of them, as the spread of a few logarithms tells little. Not more than
  /// `most` degrees.
  SpreadPrior prior(std::size_t least, double most) const;

 private:
  std::vector<double> logs_, degrees_;
};

}  // namespace assay
