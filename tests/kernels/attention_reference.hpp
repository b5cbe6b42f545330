// SPDX-License-Identifier: Apache-2.0
// Causal attention and its gradient in fp64, each element with a bound of what a kernel may be away from it.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "kernels/attention.hpp"

namespace assay::reference {

/// Roundings of a kernel: sums and functions in fp32 (`unit` 2^-24), and how numbers are stored between them
/// (`stored`: 0 for fp32, 2^-8 for bf16).
struct Rounding {
  double unit, stored;
};

struct Bounded {
  std::vector<double> value, bound;
  explicit Bounded(std::size_t n) : value(n, 0.0), bound(n, 0.0) {}
};

/// Of one pair: matrices [length, depth] and, of weights, [length, length].
class AttentionReference {
 public:
  using Matrix = std::vector<double>;

  AttentionReference(const kernels::AttentionShape& shape, const Matrix& qkv, std::size_t pair,
                     Rounding rounding)
      : n_(shape.length),
        d_(shape.depth),
        scale_(1 / std::sqrt(static_cast<double>(shape.depth))),
        r_(rounding),
        q_(n_ * d_),
        k_(n_ * d_),
        v_(n_ * d_),
        weight_(n_ * n_),
        slack_(n_ * n_),
        out(n_ * d_),
        lse(n_) {
    const std::size_t width = shape.width(), b = pair / shape.heads, h = pair % shape.heads;
    for (std::size_t i = 0; i < n_; ++i)
      for (std::size_t d = 0; d < d_; ++d) {
        const std::size_t at = (b * n_ + i) * 3 * width + h * d_ + d;
        q_[i * d_ + d] = qkv[at];
        k_[i * d_ + d] = qkv[at + width];
        v_[i * d_ + d] = qkv[at + 2 * width];
      }
    forward();
  }

  /// Gradients for dout [length, depth]: q, k, v.
  std::vector<Bounded> backward(const Matrix& dout) const {
    std::vector<Bounded> all(3, Bounded(n_ * d_));
    for (std::size_t i = 0; i < n_; ++i) {
      double delta = 0, delta_slack = 0;
      for (std::size_t d = 0; d < d_; ++d) {
        const double o = out.value[i * d_ + d], g = dout[i * d_ + d];
        delta += o * g;
        delta_slack += std::abs(g) * (out.bound[i * d_ + d] + sums(d_) * std::abs(o));
      }
      for (std::size_t j = 0; j <= i; ++j) add_pair(i, j, dout, delta, delta_slack, all);
    }
    for (Bounded& one : all)
      for (std::size_t x = 0; x < one.value.size(); ++x)
        one.bound[x] += r_.stored * (std::abs(one.value[x]) + one.bound[x]) + 1e-30;
    return all;
  }

 private:
  /// What a sum of n products in fp32 may be off, as a factor of the sum of their magnitudes. Tensor cores
  /// may cut where others round: twice as much.
  double sums(std::size_t n) const { return 2 * r_.unit * static_cast<double>(n + 2); }

  void forward() {
    for (std::size_t i = 0; i < n_; ++i) {
      double top = -1e300, total = 0, worst = 0;
      std::vector<double> score(i + 1);
      for (std::size_t j = 0; j <= i; ++j) {
        double magnitude = 0;
        score[j] = scale_ * dot(&q_[i * d_], &k_[j * d_], magnitude);
        slack_[i * n_ + j] = scale_ * magnitude * sums(d_);
        top = std::max(top, score[j]);
      }
      for (const double s : score) total += std::exp(s - top);
      lse.value[i] = top + std::log(total);
      // e^x is as wrong as its argument, which is rounded once more, and the function itself by a few units.
      for (std::size_t j = 0; j <= i; ++j) {
        slack_[i * n_ + j] += 4 * r_.unit * (std::abs(score[j]) + std::abs(top) + 4);
        worst = std::max(worst, slack_[i * n_ + j]);
      }
      lse.bound[i] = worst + sums(n_) + 4 * r_.unit * std::abs(lse.value[i]);
      for (std::size_t j = 0; j <= i; ++j) {
        weight_[i * n_ + j] = std::exp(score[j] - lse.value[i]);
        slack_[i * n_ + j] += lse.bound[i];
        for (std::size_t d = 0; d < d_; ++d) {
          const double term = weight_[i * n_ + j] * v_[j * d_ + d];
          out.value[i * d_ + d] += term;
          out.bound[i * d_ + d] += std::abs(term) * (slack_[i * n_ + j] + r_.stored + sums(n_));
        }
      }
      for (std::size_t d = 0; d < d_; ++d)
        out.bound[i * d_ + d] += r_.stored * std::abs(out.value[i * d_ + d]) + 1e-30;
    }
  }

  void add_pair(std::size_t i, std::size_t j, const Matrix& dout, double delta, double delta_slack,
                std::vector<Bounded>& all) const {
    double magnitude = 0;
    const double weight = weight_[i * n_ + j], slack = slack_[i * n_ + j];
    const double dweight = dot(&dout[i * d_], &v_[j * d_], magnitude),
                 away = magnitude * sums(d_) + delta_slack;
    const double dscore = weight * (dweight - delta) * scale_;
    const double dscore_slack = weight * scale_ * (slack * std::abs(dweight - delta) + (1 + slack) * away) +
                                (r_.stored + 4 * r_.unit) * std::abs(dscore);
    const auto add = [&](Bounded& to, std::size_t at, double factor, double factor_slack, double x) {
      to.value[at] += factor * x;
      to.bound[at] += std::abs(x) * (factor_slack * (1 + r_.stored) + sums(n_) * std::abs(factor));
    };
    for (std::size_t d = 0; d < d_; ++d) {
      add(all[0], i * d_ + d, dscore, dscore_slack, k_[j * d_ + d]);
      add(all[1], j * d_ + d, dscore, dscore_slack, q_[i * d_ + d]);
      add(all[2], j * d_ + d, weight, weight * (slack + r_.stored), dout[i * d_ + d]);
    }
  }

  double dot(const double* a, const double* b, double& magnitude) const {
    double sum = 0;
    for (std::size_t d = 0; d < d_; ++d) {
      sum += a[d] * b[d];
      magnitude += std::abs(a[d] * b[d]);
    }
    return sum;
  }

  std::size_t n_, d_;
  double scale_;
  Rounding r_;
  Matrix q_, k_, v_, weight_, slack_;  ///< slack: relative error of a weight

 public:
  Bounded out, lse;
};

}  // namespace assay::reference
