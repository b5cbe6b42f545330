// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace assay {

inline double as_double(std::size_t n) { return static_cast<double>(n); }

/// NaN samples ("not taken") are left out by all of these; empty input gives NaN.
double median(std::span<const double> values);
/// Linear interpolation between order statistics (type 7).
double quantile(std::span<const double> values, double q);
/// 1.4826 x median absolute deviation: the standard deviation of a normal sample.
double mad_sigma(std::span<const double> values);
/// Standard deviation of a sample, n - 1 below; NaN for fewer than two values.
double standard_deviation(std::span<const double> values);
/// Standard error of the median of normal values over that of their mean: sqrt(pi / 2).
inline constexpr double normal_median_error = 1.2533;
/// Standard error of the median under mad_sigma: normal_median_error * sigma / sqrt(n).
double median_standard_error(std::span<const double> values);
/// Relative half-width of the 95 % interval of the median, 1.96 se / median; infinite for fewer than 3
/// values.
double median_relative_ci(std::span<const double> values);

}  // namespace assay
