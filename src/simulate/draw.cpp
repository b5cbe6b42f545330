// SPDX-License-Identifier: Apache-2.0
#include "simulate/draw.hpp"

#include <cmath>
#include <numbers>

namespace assay::simulate {
namespace {

// Upper quartiles: scaling by their ratio gives both distributions the same median absolute deviation.
constexpr double normal_quartile = 0.6744897501960817;
constexpr double t3_quartile = 0.7648923284043533;
constexpr double t4_quartile = 0.7406970841126814;

}  // namespace

double Draw::uniform(std::uint64_t index, unsigned slot) const noexcept {
  return stream_.uniform(counter(index, slot));
}

double Draw::normal(std::uint64_t index, unsigned slot) const noexcept {
  // Box-Muller; 1 - u is in (0, 1].
  const double radius = std::sqrt(-2.0 * std::log1p(-uniform(index, slot)));
  return radius * std::cos(2.0 * std::numbers::pi * uniform(index, slot + 1));
}

double Draw::exponential(std::uint64_t index, unsigned slot) const noexcept {
  return -std::log1p(-uniform(index, slot));
}

double Draw::heavy(std::uint64_t index, int nu, unsigned slot) const noexcept {
  // chi-square with 4 degrees is the sum of two exponentials times 2; with 3, of one and a squared normal.
  const double z = normal(index, slot);
  double chi2 = 2.0 * exponential(index, slot + 2);
  if (nu == 3) {
    const double extra = normal(index, slot + 3);
    chi2 += extra * extra;
    return z / std::sqrt(chi2 / 3.0) * (normal_quartile / t3_quartile);
  }
  chi2 += 2.0 * exponential(index, slot + 3);
  return z / std::sqrt(chi2 / 4.0) * (normal_quartile / t4_quartile);
}

}  // namespace assay::simulate
