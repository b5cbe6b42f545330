// SPDX-License-Identifier: Apache-2.0
// The operations of a transformer, and a whole one, written down naively in fp64.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace assay::reference {

using Values = std::vector<double>;

inline Values widen(const std::vector<float>& x) { return {x.begin(), x.end()}; }

/// c[m, n] = a[m, k] b[k, n]
inline Values product(const Values& a, const Values& b, std::size_t m, std::size_t k, std::size_t n) {
  Values c(m * n, 0.0);
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t l = 0; l < k; ++l) c[i * n + j] += a[i * k + l] * b[l * n + j];
  return c;
}

inline Values rmsnorm(const Values& x, std::size_t width, double epsilon) {
  Values y(x.size());
  for (std::size_t r = 0; r < x.size() / width; ++r) {
    double squares = 0;
    for (std::size_t i = 0; i < width; ++i) squares += x[r * width + i] * x[r * width + i];
    const double scale = 1 / std::sqrt(squares / static_cast<double>(width) + epsilon);
    for (std::size_t i = 0; i < width; ++i) y[r * width + i] = x[r * width + i] * scale;
  }
  return y;
}

inline Values rope(Values qkv, std::size_t heads, std::size_t depth, std::size_t length) {
  const std::size_t width = heads * depth, half = depth / 2;
  for (std::size_t r = 0; r < qkv.size() / (3 * width); ++r)
    for (std::size_t part = 0; part < 2; ++part)
      for (std::size_t h = 0; h < heads; ++h)
        for (std::size_t j = 0; j < half; ++j) {
          const double angle = static_cast<double>(r % length) *
                               std::pow(10000.0, -2.0 * static_cast<double>(j) / static_cast<double>(depth));
          double& a = qkv[r * 3 * width + part * width + h * depth + j];
          double& b = qkv[r * 3 * width + part * width + h * depth + j + half];
          const double x = a, y = b;
          a = x * std::cos(angle) - y * std::sin(angle);
          b = x * std::sin(angle) + y * std::cos(angle);
        }
  return qkv;
}

inline Values attention(const Values& qkv, std::size_t batch, std::size_t length, std::size_t heads,
                        std::size_t depth) {
  const std::size_t width = heads * depth;
  Values out(batch * length * width, 0.0);
  for (std::size_t b = 0; b < batch; ++b)
    for (std::size_t h = 0; h < heads; ++h)
      for (std::size_t i = 0; i < length; ++i) {
        const auto at = [&](std::size_t row, std::size_t part, std::size_t d) {
          return qkv[(b * length + row) * 3 * width + part * width + h * depth + d];
        };
        Values weight(i + 1);
        double sum = 0;
        for (std::size_t j = 0; j <= i; ++j) {
          double score = 0;
          for (std::size_t d = 0; d < depth; ++d) score += at(i, 0, d) * at(j, 1, d);
          sum += weight[j] = std::exp(score / std::sqrt(static_cast<double>(depth)));
        }
        for (std::size_t j = 0; j <= i; ++j)
          for (std::size_t d = 0; d < depth; ++d)
            out[(b * length + i) * width + h * depth + d] += weight[j] / sum * at(j, 2, d);
      }
  return out;
}

inline double cross_entropy(const Values& logits, const std::int32_t* targets, std::size_t rows,
                            std::size_t width) {
  double loss = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    if (targets[r] < 0) continue;
    double sum = 0;
    for (std::size_t i = 0; i < width; ++i) sum += std::exp(logits[r * width + i]);
    loss += std::log(sum) - logits[r * width + static_cast<std::size_t>(targets[r])];
  }
  return loss;
}

/// The derivative of f at x along element i, by central differences.
inline double derivative(const std::function<double(const Values&)>& f, Values x, std::size_t i,
                         double step = 1e-5) {
  const double middle = x[i];
  x[i] = middle + step;
  const double above = f(x);
  x[i] = middle - step;
  return (above - f(x)) / (2 * step);
}

inline double dot(const Values& a, const Values& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace assay::reference
