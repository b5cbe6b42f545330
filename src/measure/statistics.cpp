// SPDX-License-Identifier: Apache-2.0
#include "measure/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace assay {
namespace {
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

std::vector<double> taken(std::span<const double> values) {
  std::vector<double> kept;
  kept.reserve(values.size());
  std::copy_if(values.begin(), values.end(), std::back_inserter(kept),
               [](double v) { return !std::isnan(v); });
  return kept;
}

double quantile_in_place(std::vector<double>& kept, double q) {
  if (kept.empty()) return nan;
  const double position = q * static_cast<double>(kept.size() - 1);
  const auto low = static_cast<std::size_t>(position);
  const double fraction = position - static_cast<double>(low);
  const auto middle = kept.begin() + static_cast<std::ptrdiff_t>(low);
  std::nth_element(kept.begin(), middle, kept.end());
  const double a = *middle;
  if (fraction == 0.0) return a;
  const double b = *std::min_element(middle + 1, kept.end());
  return a + fraction * (b - a);
}
}  // namespace

double quantile(std::span<const double> values, double q) {
  auto kept = taken(values);
  return quantile_in_place(kept, std::clamp(q, 0.0, 1.0));
}

double median(std::span<const double> values) { return quantile(values, 0.5); }

double mad_sigma(std::span<const double> values) {
  auto kept = taken(values);
  const double centre = quantile_in_place(kept, 0.5);
  for (double& v : kept) v = std::abs(v - centre);
  return 1.4826 * quantile_in_place(kept, 0.5);
}

double standard_deviation(std::span<const double> values) {
  const auto kept = taken(values);
  if (kept.size() < 2) return nan;
  const auto n = static_cast<double>(kept.size());
  double mean = 0, squares = 0;
  for (const double v : kept) mean += v / n;
  for (const double v : kept) squares += (v - mean) * (v - mean);
  return std::sqrt(squares / (n - 1));
}

double median_standard_error(std::span<const double> values) {
  const auto n = static_cast<double>(taken(values).size());
  return n > 0 ? normal_median_error * mad_sigma(values) / std::sqrt(n) : nan;
}

double median_relative_ci(std::span<const double> values) {
  if (taken(values).size() < 3) return std::numeric_limits<double>::infinity();
  return 1.96 * median_standard_error(values) / std::abs(median(values));
}

}  // namespace assay
