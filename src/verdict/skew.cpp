// SPDX-License-Identifier: Apache-2.0
#include "verdict/skew.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "verdict/constants.hpp"

namespace assay::verdict {
namespace {

/// Sums over sorted values, so that each of their ends is looked at in constant time.
class Sums {
 public:
  explicit Sums(std::span<const double> sorted) : v_(sorted), sum_(v_.size() + 1), squares_(v_.size() + 1) {
    for (std::size_t i = 0; i < v_.size(); ++i) {
      const double x = v_[i] - v_[v_.size() / 2];  // sums of squares of small numbers lose no digits
      sum_[i + 1] = sum_[i] + x;
      squares_[i + 1] = squares_[i] + x * x;
    }
  }
  /// Of the values from `begin` on.
  Halves from(std::size_t begin) const {
    const std::size_t n = v_.size() - begin, half = n / 2, mid = begin + half;
    Halves h;
    if (half == 0) return h;
    h.median = n % 2 == 1 ? v_[mid] : 0.5 * (v_[mid - 1] + v_[mid]);
    const double m = h.median - v_[v_.size() / 2], count = static_cast<double>(half);
    const auto about = [&](std::size_t a, std::size_t b) {
      const double sum = sum_[b] - sum_[a], squares = squares_[b] - squares_[a];
      return std::pair(std::abs(sum - m * count),
                       std::sqrt(std::max(0.0, (squares - 2 * m * sum + count * m * m) / count)));
    };
    const auto [slow, slow_deviation] = about(begin, mid);
    const auto [fast, fast_deviation] = about(v_.size() - half, v_.size());
    h.slow = slow_deviation;
    h.fast = fast_deviation;
    if (slow > 0 && fast > 0)
      h.skew = {std::log(slow / fast) * std::sqrt(static_cast<double>(n)) / constants::skew_error,
                std::log(h.slow / h.fast)};
    return h;
  }
  /// Deviation of the values from `begin` on.
  double deviation(std::size_t begin) const {
    const double n = static_cast<double>(v_.size() - begin), sum = sum_.back() - sum_[begin];
    return std::sqrt(std::max(0.0, (squares_.back() - squares_[begin] - sum * sum / n) / n));
  }

 private:
  std::span<const double> v_;
  std::vector<double> sum_, squares_;
};

}  // namespace

Halves halves_of(std::span<const double> sorted) {
  const Sums sums(sorted);
  const double few = constants::skew_gap_few / static_cast<double>(sorted.size()),
               gap = constants::skew_gap * (1 + few);
  std::size_t begin = 0;
  for (std::size_t k = sorted.size() / 2; k-- > 0 && begin == 0;) {
    const double deviation =
        std::max({sums.from(k + 1).slow, sums.deviation(k + 1), constants::peers_spread_floor});
    // Of a tail no gap is likely with many below it: an exponential one has gaps of a deviation over k.
    const double below = std::sqrt(std::max(1.0, static_cast<double>(k + 1) / 4));
    if (sorted[k + 1] - sorted[k] > std::max(constants::skew_gap_least, gap / below) * deviation)
      begin = k + 1;
  }
  return sums.from(begin);
}

Halves halves_of_all(std::span<const double> sorted) { return Sums(sorted).from(0); }

double nearer_by(double value, double score, const Halves& halves, double own, const Skew& shared) noexcept {
  const auto nearer = [&](double deviation, double evidence) {
    const double counts = std::clamp(
        (evidence - constants::skew_doubt) / (constants::skew_certain - constants::skew_doubt), 0.0, 1.0);
    const double off = (halves.median - value) / std::max(deviation, constants::peers_spread_floor);
    return counts > 0 && off > 0 && -score > off ? std::pow(-score / off, counts) : 1.0;
  };
  return std::max(nearer(halves.slow, own),
                  nearer(std::max(halves.slow, std::exp(shared.ratio) * halves.fast), shared.evidence));
}

}  // namespace assay::verdict
