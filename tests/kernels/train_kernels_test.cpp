// SPDX-License-Identifier: Apache-2.0
// The kernels of training against naive fp64 ones; gradients against finite differences of those.
#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "fresh.hpp"
#include "kernels/adamw.hpp"
#include "kernels/attention.hpp"
#include "kernels/cross_entropy.hpp"
#include "kernels/embedding.hpp"
#include "kernels/relu_squared.hpp"
#include "kernels/rmsnorm.hpp"
#include "kernels/rope.hpp"
#include "kernels/sum_squares.hpp"
#include "train_reference.hpp"

namespace assay {
namespace {

namespace host = kernels::host;
using reference::Values;
using reference::widen;

class TrainKernels : public test::LinkRetest {
 protected:
  std::vector<float> random(std::size_t n, float scale = 1) {
    std::vector<float> v(n);
    for (float& x : v) x = scale * (static_cast<float>(bits() >> 40) * 0x1.0p-23f - 1.0f);
    return v;
  }
  std::vector<std::int32_t> tokens(std::size_t n, std::size_t vocabulary) {
    std::vector<std::int32_t> v(n);
    for (auto& t : v) t = static_cast<std::int32_t>(below(vocabulary));
    return v;
  }
  static void expect_near(const std::vector<float>& have, const Values& want, double tolerance) {
    ASSERT_EQ(have.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i)
      ASSERT_NEAR(have[i], want[i], tolerance * std::max(1.0, std::abs(want[i]))) << i;
  }
  /// `have` is the gradient of f at x; some elements are looked at.
  void expect_gradient(const std::function<double(const Values&)>& f, const Values& x,
                       const std::vector<float>& have, double tolerance) {
    ASSERT_EQ(have.size(), x.size());
    for (int n = 0; n < 40; ++n) {
      const std::size_t i = below(x.size());
      const double want = reference::derivative(f, x, i);
      ASSERT_NEAR(have[i], want, tolerance * std::max(1.0, std::abs(want))) << i;
    }
  }
};

TEST_F(TrainKernels, EmbeddingGathersAndScattersInAnyParts) {
  const std::size_t rows = 50 + below(50), width = 16 * (1 + below(4)), vocabulary = 20;
  const auto table = random(vocabulary * width), dout = random(rows * width);
  const auto t = tokens(rows, vocabulary);
  std::vector<float> out(rows * width), dtable(vocabulary * width, 7.0f);
  host::embedding_forward(table.data(), t.data(), out.data(), rows, width);
  Values want(vocabulary * width, 0.0);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t i = 0; i < width; ++i) {
      ASSERT_EQ(out[r * width + i], table[static_cast<std::size_t>(t[r]) * width + i]);
      want[static_cast<std::size_t>(t[r]) * width + i] += static_cast<double>(dout[r * width + i]);
    }
  const auto cut = static_cast<std::int32_t>(below(vocabulary));
  host::embedding_backward(dout.data(), t.data(), dtable.data(), rows, width, cut, vocabulary);
  host::embedding_backward(dout.data(), t.data(), dtable.data(), rows, width, 0, cut);
  expect_near(dtable, want, 1e-5);
}

TEST_F(TrainKernels, RmsNormAndItsGradient) {
  const std::size_t rows = 1 + below(5), width = 16 * (1 + below(6)), n = rows * width;
  const auto x = random(n, 2), add = random(n), dy = random(n), before = random(n);
  std::vector<float> sum(n), y(n), alone(n), rstd(rows), dx = before;
  host::rmsnorm_forward(x.data(), add.data(), sum.data(), y.data(), rstd.data(), rows, width);
  for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(sum[i], x[i] + add[i]);
  const auto f = [&](const Values& s) { return reference::rmsnorm(s, width, kernels::rmsnorm_epsilon); };
  expect_near(y, f(widen(sum)), 1e-5);
  host::rmsnorm_backward(dy.data(), y.data(), rstd.data(), dx.data(), rows, width);
  for (std::size_t i = 0; i < n; ++i) dx[i] -= before[i];
  expect_gradient([&](const Values& s) { return reference::dot(f(s), widen(dy)); }, widen(sum), dx, 2e-5);
  host::rmsnorm_forward(sum.data(), nullptr, nullptr, alone.data(), rstd.data(), rows, width);
  EXPECT_EQ(alone, y) << "with and without an addend";
}

TEST_F(TrainKernels, RopeTurnsAndTurnsBack) {
  const kernels::RopeShape shape{1 + below(3), 32 * (1 + below(2)), 1 + below(20)};
  const std::size_t rows = 2 * shape.length, step = 3 * shape.heads * shape.depth;
  std::vector<float> cosine(shape.length * shape.depth / 2), sine(cosine.size());
  host::rope_table(shape, cosine.data(), sine.data());
  const auto before = random(rows * step);
  auto qkv = before;
  const std::size_t cut = below(rows);
  host::rope(shape, cosine.data(), sine.data(), qkv.data(), cut, rows, false);
  host::rope(shape, cosine.data(), sine.data(), qkv.data(), 0, cut, false);
  expect_near(qkv, reference::rope(widen(before), shape.heads, shape.depth, shape.length), 1e-5);
  host::rope(shape, cosine.data(), sine.data(), qkv.data(), 0, rows, true);
  expect_near(qkv, widen(before), 1e-5);
}

TEST_F(TrainKernels, AttentionAndItsGradient) {
  for (const std::size_t length : {std::size_t{1}, std::size_t{5}, 16 + below(30), 64 + below(20)}) {
    const kernels::AttentionShape s{1 + below(2), length, 1 + below(3), 16 * (1 + below(3))};
    const std::size_t rows = s.batch * s.length, n = 3 * rows * s.width();
    const auto qkv = random(n, 2), dout = random(rows * s.width());
    std::vector<float> out(rows * s.width()), lse(s.pairs() * length), dqkv(n, 9.0f);
    std::vector<float> space(host::attention_scratch(s) + 16);
    void* aligned = space.data();
    std::size_t room = space.size() * sizeof(float);
    auto* scratch = static_cast<float*>(std::align(64, 64, aligned, room));
    for (std::size_t pair = 0; pair < s.pairs(); ++pair)
      host::attention_forward(s, qkv.data(), out.data(), lse.data(), pair, scratch);
    const auto f = [&](const Values& x) {
      return reference::attention(x, s.batch, s.length, s.heads, s.depth);
    };
    expect_near(out, f(widen(qkv)), 1e-5);
    for (std::size_t pair = s.pairs(); pair-- > 0;)
      host::attention_backward(s, qkv.data(), out.data(), lse.data(), dout.data(), dqkv.data(), pair,
                               scratch);
    expect_gradient([&](const Values& x) { return reference::dot(f(x), widen(dout)); }, widen(qkv), dqkv,
                    5e-5);
  }
}

TEST_F(TrainKernels, AttentionSurvivesScoresThatOverflowExp) {
  const kernels::AttentionShape s{1, 20, 1, 16};
  auto qkv = random(3 * s.length * s.width(), 100);
  std::vector<float> out(s.length * s.width()), lse(s.length), scratch(host::attention_scratch(s));
  host::attention_forward(s, qkv.data(), out.data(), lse.data(), 0, scratch.data());
  for (const float v : out) ASSERT_TRUE(std::isfinite(v));
}

TEST_F(TrainKernels, ReluSquaredAndItsGradient) {
  const std::size_t n = 1 + below(200);
  const auto x = random(n), dy = random(n);
  std::vector<float> y(n), dx = dy;
  host::relu_squared_forward(x.data(), y.data(), n);
  host::relu_squared_backward(x.data(), dx.data(), dx.data(), n);
  for (std::size_t i = 0; i < n; ++i) {
    const float v = std::max(x[i], 0.0f);
    ASSERT_FLOAT_EQ(y[i], v * v);
    ASSERT_FLOAT_EQ(dx[i], 2 * v * dy[i]);
  }
}

TEST_F(TrainKernels, CrossEntropyInPlaceAndTargetsLeftOut) {
  const std::size_t rows = 3 + below(5), width = 16 * (1 + below(20));
  const auto logits = random(rows * width, 20);
  auto targets = tokens(rows, width);
  targets[below(rows)] = -1;
  std::vector<float> gradient = logits, loss(rows);
  constexpr float scale = 0.25f;
  host::cross_entropy(gradient.data(), targets.data(), loss.data(), scale, rows, width);
  const auto f = [&](const Values& x) { return reference::cross_entropy(x, targets.data(), rows, width); };
  double sum = 0;
  for (const float l : loss) sum += static_cast<double>(l);
  EXPECT_NEAR(sum, f(widen(logits)), 1e-5 * std::max(1.0, sum));
  expect_gradient([&](const Values& x) { return scale * f(x); }, widen(logits), gradient, 2e-6);
  for (std::size_t r = 0; r < rows; ++r)
    if (targets[r] < 0) {
      EXPECT_EQ(loss[r], 0);
      for (std::size_t i = 0; i < width; ++i) ASSERT_EQ(gradient[r * width + i], 0);
    }
}

TEST_F(TrainKernels, CrossEntropyKeepsNaN) {
  std::vector<float> logits(64, 0.5f), loss(1);
  logits[17] = std::numeric_limits<float>::quiet_NaN();
  const std::int32_t target = 3;
  host::cross_entropy(logits.data(), &target, loss.data(), 1, 1, 64);
  EXPECT_TRUE(std::isnan(loss[0]));
}

TEST_F(TrainKernels, AdamWMatchesItsFormula) {
  const std::size_t n = 1 + below(300);
  auto p = random(n), m = random(n), v = random(n);
  for (float& x : v) x = std::abs(x);
  const auto g = random(n), p0 = p, m0 = m, v0 = v;
  kernels::AdamW rule;
  rule.decay = 0.1f;
  rule.gradient_scale = 0.5f;
  rule = rule.at(7);
  host::adamw(rule, p.data(), g.data(), m.data(), v.data(), n);
  for (std::size_t i = 0; i < n; ++i) {
    const double gi = 0.5 * static_cast<double>(g[i]);
    const double mi = 0.9 * static_cast<double>(m0[i]) + 0.1 * gi,
                 vi = 0.95 * static_cast<double>(v0[i]) + 0.05 * gi * gi;
    const double c1 = 1 / (1 - std::pow(0.9, 7)), c2 = 1 / (1 - std::pow(0.95, 7));
    ASSERT_NEAR(m[i], mi, 1e-6);
    ASSERT_NEAR(v[i], vi, 1e-6);
    ASSERT_NEAR(p[i],
                static_cast<double>(p0[i]) -
                    1e-3 * (mi * c1 / (std::sqrt(vi * c2) + 1e-8) + 0.1 * static_cast<double>(p0[i])),
                1e-5);
  }
}

/// Replicas on different processors must stay equal: the bits are those of the narrowest path, whatever this
/// one is.
TEST_F(TrainKernels, AdamWRoundsAsTheFormulaIsWritten) {
  std::vector<float> p(37), g(37), m(37), v(37);
  for (std::size_t i = 0; i < p.size(); ++i) {
    const auto x = static_cast<float>(i);
    p[i] = x / 8 - 1.5f;  // exact
    g[i] = 0.5f - x / 64;
    m[i] = x / 128;
    v[i] = x / 256;
  }
  kernels::AdamW rule;
  for (int t = 1; t <= 20; ++t) host::adamw(rule.at(t), p.data(), g.data(), m.data(), v.data(), p.size());
  std::uint64_t hash = 0;
  for (const auto* all : {&p, &m, &v})
    for (const float x : *all) {
      std::uint32_t word;
      std::memcpy(&word, &x, sizeof word);
      hash = hash * 0x9e3779b97f4a7c15ULL + word;
    }
  EXPECT_EQ(hash, 0xa7cac878df7a4de5ULL) << std::hex << hash;
}

TEST_F(TrainKernels, SumOfSquares) {
  const std::size_t n = below(kernels::sum_squares_block);
  auto x = random(n + 1);
  double want = 0;
  for (const float v : x) want += static_cast<double>(v) * static_cast<double>(v);
  EXPECT_NEAR(host::sum_squares(x.data(), x.size()), want, 1e-12 * want + 1e-15);
  x[below(x.size())] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(std::isfinite(host::sum_squares(x.data(), x.size())));
}

}  // namespace
}  // namespace assay
