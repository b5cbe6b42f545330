// SPDX-License-Identifier: Apache-2.0
// Tokens whose entropy is known exactly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/random.hpp"

namespace assay::train {

struct SourceShape {
  std::size_t vocabulary = 64;
  std::size_t lag =
      1;  ///< a token depends on the one lag + 1 before it: from 1 up, only attention can know it
  std::size_t choices = 8;  ///< successors of every token
};

/// A Markov source: token j is drawn from the `choices` successors of token j - 1 - lag with weights
/// w_c = 2^-(c+1) / (1 - 2^-choices), the same ones for every context; the successors of a token are distinct
/// and drawn from the seed. So the entropy rate is H = -sum w_c ln w_c nat, whatever the stationary
/// distribution is, and the probability of every token is known. A sequence is a pure function of (seed, its
/// number): the same on every device, rank and restart.
class LagSource {
 public:
  LagSource(const SourceShape& shape, const RandomStream& random);

  /// H, in nat per token.
  double entropy() const noexcept;
  double weight(std::size_t choice) const noexcept { return weights_[choice]; }
  std::int32_t successor(std::int32_t token, std::size_t choice) const noexcept {
    return successors_[static_cast<std::size_t>(token) * shape_.choices + choice];
  }

  /// Sequence `number`: tokens[i] is the input at position i and targets[i] the token after it, or -1 for the
  /// first `lag` positions, whose targets nothing can know. Both have the same length. Returns the sum of -ln
  /// p of the targets: what a perfect model would lose on them.
  double sequence(std::uint64_t number, std::span<std::int32_t> tokens,
                  std::span<std::int32_t> targets) const;
  /// Targets that count in a sequence of `length`.
  std::size_t counted(std::size_t length) const noexcept {
    return length > shape_.lag ? length - shape_.lag : 0;
  }

 private:
  SourceShape shape_;
  RandomStream tokens_;
  std::vector<double> weights_, cumulative_;
  std::vector<std::int32_t> successors_;  ///< [vocabulary, choices]
};

}  // namespace assay::train
