// SPDX-License-Identifier: Apache-2.0
#include "measure/spread_prior.hpp"

#include <algorithm>
#include <boost/math/special_functions/digamma.hpp>
#include <boost/math/special_functions/trigamma.hpp>
#include <cmath>

namespace assay {
namespace {

using boost::math::digamma;
using boost::math::trigamma;

/// x with trigamma(x) = y; trigamma falls from infinity to 0.
double inverse_trigamma(double y) {
  double low = -12, high = 12;  // logarithms
  for (int i = 0; i < 60; ++i) {
    const double middle = 0.5 * (low + high);
    (trigamma(std::exp(middle)) > y ? low : high) = middle;
  }
  return std::exp(0.5 * (low + high));
}

}  // namespace

void SpreadPool::add(double variance, double degrees) {
  if (!(variance > 0) || !(degrees > 0)) return;
  // The logarithm of a chi-square over its degrees is below 0 in the mean.
  logs_.push_back(std::log(variance) - digamma(degrees / 2) + std::log(degrees / 2));
  degrees_.push_back(degrees);
}

SpreadPrior SpreadPool::prior(std::size_t least, double most) const {
  if (logs_.size() < std::max<std::size_t>(2, least)) return {};
  const double n = static_cast<double>(logs_.size());
  double mean = 0, own = 0, squares = 0;
  for (std::size_t i = 0; i < logs_.size(); ++i) {
    mean += logs_[i] / n;
    own += trigamma(degrees_[i] / 2) / n;
  }
  for (const double e : logs_) squares += (e - mean) * (e - mean);
  const double excess = squares / (n - 1) - own;
  const double degrees = excess > 0 ? std::min(most, 2 * inverse_trigamma(excess)) : most;
  return {std::exp(mean + digamma(degrees / 2) - std::log(degrees / 2)), degrees};
}

}  // namespace assay
