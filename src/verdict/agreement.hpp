// SPDX-License-Identifier: Apache-2.0
// One case with a sample or two of each part proves nothing. Cases of several message sizes that name the
// same part do.
#pragma once

#include <span>
#include <vector>

#include "verdict/judgement.hpp"

namespace assay::verdict {

struct SizedCase {
  double bytes = 0;   ///< of a message, 0 if the case has none
  bool slow = false;  ///< whether the part is slow in it
  int samples = 0;    ///< of the part
};

/// Bytes of the messages of a series, 0 if it does not say.
double message_bytes(const Series& s);

/// Of each case, whether it is one of those that agree: the part is slow in `agreeing_share` of the cases of
/// its size and larger ones, or of its size and smaller ones, which are `agreeing_cases` at least and have
/// `peers_small_samples` together.
std::vector<bool> agreeing(std::span<const SizedCase> cases);

}  // namespace assay::verdict
