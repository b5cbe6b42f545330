// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/math/special_functions/beta.hpp>
#include <cstddef>

namespace assay {

/// One-sided upper Clopper-Pearson bound of a rate after `hits` in `trials`; 1 when trials is 0.
inline double clopper_pearson_upper(std::size_t hits, std::size_t trials, double confidence = 0.95) {
  if (trials == 0 || hits >= trials) return 1;
  return boost::math::ibeta_inv(static_cast<double>(hits) + 1, static_cast<double>(trials - hits),
                                confidence);
}

/// The lower bound; 0 when trials is 0.
inline double clopper_pearson_lower(std::size_t hits, std::size_t trials, double confidence = 0.95) {
  if (trials == 0 || hits == 0) return 0;
  return boost::math::ibeta_inv(static_cast<double>(hits), static_cast<double>(trials - hits) + 1,
                                1 - confidence);
}

}  // namespace assay
