// SPDX-License-Identifier: Apache-2.0
// The training kernels for GPUs but attention: bit by bit against the host where the contract says so, within
// the bounds of their roundings against fp64 elsewhere.
#include "tests/kernels/cuda_train.hpp"

#include <algorithm>
#include <limits>

#include "kernels/adamw.hpp"
#include "kernels/cross_entropy.hpp"
#include "kernels/embedding.hpp"
#include "kernels/relu_squared.hpp"
#include "kernels/rmsnorm.hpp"
#include "kernels/rope.hpp"
#include "kernels/sum_squares.hpp"

namespace assay::test {
namespace {

namespace host = kernels::host;
namespace cuda = kernels::cuda;

template <typename T>
class CudaTrainTyped : public CudaTrain {};
using Types = testing::Types<float, Bfloat>;
struct TypeName {
  template <typename T>
  static std::string GetName(int) {
    return is_bf16<T> ? "bf16" : "fp32";
  }
};
TYPED_TEST_SUITE(CudaTrainTyped, Types, TypeName);

TYPED_TEST(CudaTrainTyped, EmbeddingHasTheHostsBits) {
  using T = TypeParam;
  for (const std::size_t rows : {std::size_t{1}, 100 + this->below(100), std::size_t{2300}}) {
    const std::size_t width = rows > 2000 ? 272 : 16 * (1 + this->below(4)), vocabulary = 1 + this->below(40);
    const auto table = this->template random<T>(vocabulary * width),
               dout = this->template random<T>(rows * width);
    const auto tokens = this->tokens(rows, vocabulary);
    const OnDevice<T> d_table(table), d_dout(dout), out(rows * width);
    const OnDevice<std::int32_t> d_tokens(tokens);
    const OnDevice<float> dtable(vocabulary * width);
    cuda::embedding_forward(d_table.get(), d_tokens.get(), out.get(), rows, width, nullptr);
    cuda::embedding_backward(d_dout.get(), d_tokens.get(), dtable.get(), rows, width, vocabulary, nullptr);
    this->finish();
    std::vector<T> want(rows * width);
    for (std::size_t i = 0; i < want.size(); ++i)
      want[i] = table[static_cast<std::size_t>(tokens[i / width]) * width + i % width];
    this->expect_equal_bits(out.host(), want, "out");
    std::vector<float> wanted(vocabulary * width);
    host::embedding_backward(floats(dout).data(), tokens.data(), wanted.data(), rows, width, 0,
                             static_cast<std::int32_t>(vocabulary));
    this->expect_equal_bits(dtable.host(), wanted, "dtable");
  }
}

TYPED_TEST(CudaTrainTyped, RmsNormForward) {
  using T = TypeParam;
  for (const std::size_t width : {std::size_t{16}, 16 * (1 + this->below(40)), std::size_t{4096}}) {
    const std::size_t rows = 1 + this->below(3), n = rows * width;
    const auto x = this->template random<T>(n, 2), add = this->template random<T>(n);
    const OnDevice<T> d_x(x), d_add(add), sum(n), y(n), alone(n);
    const OnDevice<float> rstd(rows), again(rows);
    cuda::rmsnorm_forward(d_x.get(), d_add.get(), sum.get(), y.get(), rstd.get(), rows, width, nullptr);
    cuda::rmsnorm_forward(sum.get(), static_cast<const T*>(nullptr), static_cast<T*>(nullptr), alone.get(),
                          again.get(), rows, width, nullptr);
    this->finish();
    std::vector<T> added(n);
    for (std::size_t i = 0; i < n; ++i) assign(added[i], number(x[i]) + number(add[i]));
    this->expect_equal_bits(sum.host(), added, "sum");
    this->expect_equal_bits(alone.host(), y.host(), "with and without an addend");
    std::vector<double> want(n), bound(n);
    for (std::size_t r = 0; r < rows; ++r) {
      double squares = 0;
      for (std::size_t i = r * width; i < (r + 1) * width; ++i)
        squares += std::pow(static_cast<double>(number(added[i])), 2);
      const double scale =
          1 / std::sqrt(squares / static_cast<double>(width) + static_cast<double>(kernels::rmsnorm_epsilon));
      for (std::size_t i = r * width; i < (r + 1) * width; ++i) {
        want[i] = scale * static_cast<double>(number(added[i]));
        // At most 16 additions in a thread, 5 in a warp, 8 over warps, each of two roundings; the root halves
        // them; then four more.
        bound[i] = std::abs(want[i]) * (33 * unit32 + stored_unit<T>);
      }
    }
    this->expect_within(y.host(), want, bound, "y");
  }
}

TYPED_TEST(CudaTrainTyped, RmsNormBackward) {
  using T = TypeParam;
  const std::size_t width = 16 * (1 + this->below(150)), rows = 1 + this->below(3), n = rows * width;
  const auto dy = this->template random<T>(n), y = this->template random<T>(n, 2),
             before = this->template random<T>(n);
  const auto rstd = this->template random<float>(rows);
  const OnDevice<T> d_dy(dy), d_y(y), dx(before);
  const OnDevice<float> d_rstd(rstd);
  cuda::rmsnorm_backward(d_dy.get(), d_y.get(), d_rstd.get(), dx.get(), rows, width, nullptr);
  this->finish();
  std::vector<double> want(n), bound(n);
  for (std::size_t r = 0; r < rows; ++r) {
    double mean = 0, magnitude = 0;
    for (std::size_t i = r * width; i < (r + 1) * width; ++i) {
      const double term =
          static_cast<double>(number(dy[i])) * static_cast<double>(number(y[i])) / static_cast<double>(width);
      mean += term;
      magnitude += std::abs(term);
    }
    for (std::size_t i = r * width; i < (r + 1) * width; ++i) {
      const double scale = static_cast<double>(rstd[r]), b = static_cast<double>(number(before[i]));
      const double d = static_cast<double>(number(dy[i])), v = static_cast<double>(number(y[i]));
      want[i] = b + scale * (d - v * mean);
      bound[i] = unit32 * (std::abs(scale * v) * magnitude * 32 +
                           4 * (std::abs(b) + std::abs(scale) * (std::abs(d) + std::abs(v * mean))));
      bound[i] += stored_unit<T> * (std::abs(want[i]) + bound[i]);
    }
  }
  this->expect_within(dx.host(), want, bound, "dx");
}

TYPED_TEST(CudaTrainTyped, RopeTurnsAndTurnsBack) {
  using T = TypeParam;
  const kernels::RopeShape shape{1 + this->below(3), 32 * (1 + this->below(4)), 1 + this->below(20)};
  const std::size_t rows = 2 * shape.length, width = shape.heads * shape.depth, half = shape.depth / 2;
  std::vector<float> cosine(shape.length * half), sine(cosine.size());
  host::rope_table(shape, cosine.data(), sine.data());
  const auto before = this->template random<T>(rows * 3 * width);
  const OnDevice<T> qkv(before);
  const OnDevice<float> d_cosine(cosine), d_sine(sine);
  for (const bool inverse : {false, true}) {
    const auto x = doubles(qkv.host());
    auto want = x;
    std::vector<double> bound(x.size(), 0.0);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t row = i / (3 * width), column = i % (3 * width), j = column % shape.depth;
      if (column >= 2 * width || j >= half) continue;
      const std::size_t angle = row % shape.length * half + j;
      const auto c = static_cast<double>(cosine[angle]),
                 s = (inverse ? -1 : 1) * static_cast<double>(sine[angle]);
      want[i] = x[i] * c - x[i + half] * s;
      want[i + half] = x[i] * s + x[i + half] * c;
      for (const std::size_t at : {i, i + half})
        bound[at] = 2 * unit32 * (std::abs(x[i]) + std::abs(x[i + half])) *
                    (1 + stored_unit<T>)+stored_unit<T> * std::abs(want[at]);
    }
    cuda::rope(shape, d_cosine.get(), d_sine.get(), qkv.get(), rows, inverse, nullptr);
    this->finish();
    this->expect_within(qkv.host(), want, bound, inverse ? "back" : "there");
  }
}

TYPED_TEST(CudaTrainTyped, ReluSquaredHasTheHostsBits) {
  using T = TypeParam;
  const std::size_t n = 1 + this->below(3000);
  auto x = this->template random<T>(n);
  const auto dy = this->template random<T>(n);
  if (n > 9) assign(x[9], std::numeric_limits<float>::infinity());
  const OnDevice<T> d_x(x), y(n), dx(dy);
  cuda::relu_squared_forward(d_x.get(), y.get(), n, nullptr);
  cuda::relu_squared_backward(d_x.get(), dx.get(), dx.get(), n, nullptr);
  this->finish();
  std::vector<float> want(n), want_dx(n);
  host::relu_squared_forward(floats(x).data(), want.data(), n);
  host::relu_squared_backward(floats(x).data(), floats(dy).data(), want_dx.data(), n);
  this->expect_equal_bits(y.host(), as<T>(want), "y");
  // 0 * dy has a sign, which is nobody's business.
  const auto have = dx.host();
  for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(number(have[i]), number(as<T>({want_dx[i]})[0])) << i;
}

TYPED_TEST(CudaTrainTyped, CrossEntropyInPlace) {
  using T = TypeParam;
  for (const std::size_t width : {std::size_t{16}, 16 * (1 + this->below(60)), std::size_t{8208}}) {
    const std::size_t rows = 4;
    const auto logits = this->template random<T>(rows * width, 20);
    auto targets = this->tokens(rows, width);
    targets[this->below(rows)] = -1;
    const OnDevice<T> gradient(logits);
    const OnDevice<std::int32_t> d_targets(targets);
    const OnDevice<float> loss(rows);
    constexpr float scale = 0.25f;
    cuda::cross_entropy(gradient.get(), d_targets.get(), loss.get(), scale, rows, width, nullptr);
    this->finish();
    std::vector<double> want(rows * width, 0.0), bound(rows * width, 0.0), want_loss(rows, 0.0),
        loss_bound(rows, 0.0);
    for (std::size_t r = 0; r < rows; ++r) {
      if (targets[r] < 0) continue;
      const auto at = [&](std::size_t i) { return static_cast<double>(number(logits[r * width + i])); };
      const auto target = static_cast<std::size_t>(targets[r]);
      double top = -1e30, sum = 0;
      for (std::size_t i = 0; i < width; ++i) top = std::max(top, at(i));
      for (std::size_t i = 0; i < width; ++i) sum += std::exp(at(i) - top);
      // A difference of up to 40 is rounded before e^x, which is good to 2 units, and a thread changes its
      // maximum a few times; sums have at most 20 additions in a thread and 25 over threads.
      const double sum_error = unit32 * (3 * 42 + 45);
      for (std::size_t i = 0; i < width; ++i) {
        const double p = std::exp(at(i) - top) / sum;
        want[r * width + i] = 0.25 * (p - (i == target ? 1 : 0));
        bound[r * width + i] = 0.25 * (p * (sum_error + unit32 * 48) + (i == target ? 2 * unit32 : 0));
        bound[r * width + i] += stored_unit<T> * std::abs(want[r * width + i]) * (1 + unit16) + 0x1p-133;
      }
      want_loss[r] = std::log(sum) + top - at(target);
      loss_bound[r] =
          sum_error + 4 * unit32 * (std::abs(std::log(sum)) + std::abs(top) + std::abs(at(target)));
    }
    this->expect_within(gradient.host(), want, bound, "gradient");
    this->expect_within(loss.host(), want_loss, loss_bound, "loss");
  }
}

TYPED_TEST(CudaTrainTyped, CrossEntropyKeepsNaN) {
  using T = TypeParam;
  auto logits = this->template random<T>(64);
  assign(logits[17], std::numeric_limits<float>::quiet_NaN());
  const OnDevice<T> gradient(logits);
  const OnDevice<std::int32_t> target(std::vector<std::int32_t>{3});
  const OnDevice<float> loss(1);
  cuda::cross_entropy(gradient.get(), target.get(), loss.get(), 1.0f, 1, 64, nullptr);
  this->finish();
  EXPECT_TRUE(std::isnan(loss.host()[0]));
  EXPECT_TRUE(std::isnan(number(gradient.host()[5])));
}

using CudaTrainUpdate = CudaTrain;

TEST_F(CudaTrainUpdate, AdamWHasTheHostsBits) {
  const std::size_t n = 1 + below(3000);
  auto p = random<float>(n), m = random<float>(n), v = random<float>(n), g = random<float>(n);
  for (std::size_t i = 0; i < n; ++i) {
    v[i] = std::abs(v[i]);
    // From normal sizes down to denormal ones.
    const float small = std::ldexp(1.0f, -static_cast<int>(below(70)));
    g[i] *= small * small;
    m[i] *= small;
    v[i] *= small * small;
  }
  kernels::AdamW rule;
  rule.decay = 0.1f;
  rule.gradient_scale = 1.0f / 3;
  const OnDevice<float> d_p(p), d_m(m), d_v(v), d_g(g);
  const OnDevice<Bfloat> weights(n);
  for (const int step : {1, 7}) {
    cuda::adamw(rule.at(step), d_p.get(), d_g.get(), d_m.get(), d_v.get(),
                step == 7 ? weights.get() : nullptr, n, nullptr);
    host::adamw(rule.at(step), p.data(), g.data(), m.data(), v.data(), n);
  }
  finish();
  expect_equal_bits(d_p.host(), p, "parameters");
  expect_equal_bits(d_m.host(), m, "m");
  expect_equal_bits(d_v.host(), v, "v");
  expect_equal_bits(weights.host(), as<Bfloat>(p), "weights");
}

TEST_F(CudaTrainUpdate, NarrowScaleAndAdd) {
  const std::size_t n = 1 + below(2000);
  auto x = random<float>(n, 3);
  const auto y = random<float>(n);
  const OnDevice<float> d_x(x), d_y(y);
  const OnDevice<Bfloat> narrow(n);
  cuda::scale(d_x.get(), 0.3f, n, nullptr);
  cuda::add(d_x.get(), d_y.get(), n, nullptr);
  cuda::to_bf16(d_x.get(), narrow.get(), n, nullptr);
  finish();
  for (std::size_t i = 0; i < n; ++i) {
    x[i] *= 0.3f;
    x[i] += y[i];
  }
  expect_equal_bits(d_x.host(), x, "x");
  expect_equal_bits(narrow.host(), as<Bfloat>(x), "narrow");
}

TEST_F(CudaTrainUpdate, SumsOfSquaresHaveTheHostsBits) {
  for (const std::size_t n : {std::size_t{1}, std::size_t{4096}, 1 + below(20000)}) {
    const auto x = random<float>(n);
    const std::size_t blocks = (n + kernels::sum_squares_block - 1) / kernels::sum_squares_block;
    const OnDevice<float> d_x(x);
    const OnDevice<double> parts(blocks);
    cuda::sum_squares(d_x.get(), n, parts.get(), nullptr);
    finish();
    const auto have = parts.host();
    for (std::size_t b = 0; b < blocks; ++b) {
      const std::size_t first = b * kernels::sum_squares_block;
      ASSERT_EQ(have[b], host::sum_squares(x.data() + first, std::min(kernels::sum_squares_block, n - first)))
          << b;
    }
  }
}

}  // namespace
}  // namespace assay::test
