// SPDX-License-Identifier: Apache-2.0
// Attention on GPUs against fp64, every element within the bound of the kernel's roundings.
#include <algorithm>

#include "attention_reference.hpp"
#include "kernels/attention.hpp"
#include "tests/kernels/cuda_train.hpp"

namespace assay::test {
namespace {

namespace cuda = kernels::cuda;
using kernels::AttentionShape;

class CudaAttention : public CudaTrain {
 protected:
  template <typename T>
  struct Result {
    std::vector<T> out, dqkv;
    std::vector<float> lse;
  };

  template <typename T>
  static Result<T> run(const AttentionShape& s, const std::vector<T>& qkv, const std::vector<T>& dout) {
    const OnDevice<T> d_qkv(qkv), d_dout(dout), out(dout.size()), dqkv(qkv.size());
    const OnDevice<float> lse(s.pairs() * s.length), delta(s.pairs() * s.length);
    cuda::attention_forward(s, d_qkv.get(), out.get(), lse.get(), nullptr);
    // NaNs: what is read there was written before.
    const OnDevice<Bfloat> scores(
        std::vector<Bfloat>(kernels::attention_score_bytes(s) / sizeof(Bfloat), Bfloat{0x7fff}));
    cuda::attention_backward(s, d_qkv.get(), out.get(), lse.get(), d_dout.get(), dqkv.get(), delta.get(),
                             scores.get(), nullptr);
    finish();
    return {out.host(), dqkv.host(), lse.host()};
  }

  /// A head's columns of a buffer with `parts` of them side by side.
  static std::vector<double> head(const AttentionShape& s, const std::vector<double>& x, std::size_t pair,
                                  std::size_t part, std::size_t parts) {
    std::vector<double> all;
    const std::size_t b = pair / s.heads, h = pair % s.heads;
    for (std::size_t i = 0; i < s.length; ++i)
      for (std::size_t d = 0; d < s.depth; ++d)
        all.push_back(x[((b * s.length + i) * parts + part) * s.width() + h * s.depth + d]);
    return all;
  }

  template <typename T>
  void check(const AttentionShape& s, float size) {
    SCOPED_TRACE("length " + std::to_string(s.length) + " depth " + std::to_string(s.depth));
    const std::size_t rows = s.batch * s.length;
    const auto qkv = random<T>(3 * rows * s.width(), size), dout = random<T>(rows * s.width());
    const Result<T> have = run(s, qkv, dout);
    for (std::size_t pair = 0; pair < s.pairs(); ++pair) {
      const reference::AttentionReference want(s, doubles(qkv), pair, {unit32, stored_unit<T>});
      const double tightness = is_bf16<T> ? 0.4 : 0.03;
      expect_within(head(s, doubles(have.out), pair, 0, 1), want.out, s.length, tightness, "out");
      const auto first = have.lse.begin() + static_cast<std::ptrdiff_t>(pair * s.length);
      expect_within(std::vector<double>(first, first + static_cast<std::ptrdiff_t>(s.length)), want.lse,
                    s.length, tightness, "lse");
      const auto gradients = want.backward(head(s, doubles(dout), pair, 0, 1));
      const char* names[] = {"dq", "dk", "dv"};
      for (std::size_t part = 0; part < 3; ++part)
        expect_within(head(s, doubles(have.dqkv), pair, part, 3), gradients[part], s.length, tightness,
                      names[part]);
    }
  }
  using CudaTrain::expect_within;
  static void expect_within(const std::vector<double>& have, const reference::Bounded& want, std::size_t keys,
                            double tightness, const char* what) {
    double bounds = 0, squares = 0;
    for (std::size_t i = 0; i < have.size(); ++i) {
      ASSERT_LE(std::abs(have[i] - want.value[i]), want.bound[i])
          << what << " " << i << ": " << have[i] << ", " << want.value[i];
      bounds += want.bound[i] / static_cast<double>(have.size());
      squares += want.value[i] * want.value[i] / static_cast<double>(have.size());
    }
    // A wide bound would prove little. (Only where many keys share a query: of one key the score's gradient
    // is 0, of two it may happen to be next to it, and no bound is narrow beside that.)
    if (keys >= 32) {
      EXPECT_LT(bounds, tightness * std::sqrt(squares)) << what;
    }
  }
};

TEST_F(CudaAttention, Fp32IsWithinItsRoundings) {
  for (const std::size_t length : {std::size_t{1}, 2 + below(30), 33 + below(40)})
    check<float>({1 + below(2), length, 1 + below(2), 16 * (1 + below(8))}, 2);
}

TEST_F(CudaAttention, Fp32SurvivesScoresThatOverflow) {
  const AttentionShape s{1, 40, 1, 32};
  const auto qkv = random<float>(3 * s.length * s.width(), 100), dout = random<float>(s.length * s.width());
  const auto have = run(s, qkv, dout);
  for (const float x : have.out) ASSERT_TRUE(std::isfinite(x));
  for (const float x : have.dqkv) ASSERT_TRUE(std::isfinite(x));
}

class CudaAttentionDepth : public CudaAttention, public testing::WithParamInterface<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Depths, CudaAttentionDepth, testing::Values(32, 64, 128));

TEST_P(CudaAttentionDepth, Bf16IsWithinItsRoundings) {
  check<Bfloat>({1, 128 + below(2) * 64, 1, GetParam()}, 2);
  check<Bfloat>({1 + below(2), 1 + below(140), 1 + below(2), GetParam()}, 1);
  check<Bfloat>({1, 300 + below(100), 1, GetParam()}, 1);  // several tiles of every kernel
  check<Bfloat>({1, 1, 2, GetParam()}, 2);
}

TEST_F(CudaAttention, Bf16SurvivesScoresThatOverflow) {
  const AttentionShape s{1, 70, 1, 64};
  const auto qkv = random<Bfloat>(3 * s.length * s.width(), 100), dout = random<Bfloat>(s.length * s.width());
  const auto have = run(s, qkv, dout);
  for (const Bfloat x : have.out) ASSERT_TRUE(std::isfinite(number(x)));
  for (const Bfloat x : have.dqkv) ASSERT_TRUE(std::isfinite(number(x)));
}

/// What lies behind the last row of a sequence belongs to others: NaNs there must not come through.
TEST_F(CudaAttention, ASequenceSeesNothingOfTheNext) {
  const AttentionShape one{1, 70, 1, 64}, two{2, 70, 1, 64};
  auto qkv = random<Bfloat>(3 * two.batch * two.length * two.width()),
       dout = random<Bfloat>(two.batch * two.length * two.width());
  const auto half = [](const std::vector<Bfloat>& x) {
    return std::vector<Bfloat>(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2));
  };
  const auto want = run(one, half(qkv), half(dout));
  for (std::size_t i = qkv.size() / 2; i < qkv.size(); ++i) qkv[i].bits = 0x7fff;
  const auto have = run(two, qkv, dout);
  expect_equal_bits(half(have.out), want.out, "out");
  expect_equal_bits(half(have.dqkv), want.dqkv, "dqkv");
}

TEST_F(CudaAttention, RepeatsBitByBit) {
  const AttentionShape s{1, 70, 2, 32};
  const auto qkv = random<float>(3 * s.length * s.width(), 2), dout = random<float>(s.length * s.width());
  const auto one = run(s, qkv, dout), two = run(s, qkv, dout);
  expect_equal_bits(one.out, two.out, "out");
  expect_equal_bits(one.dqkv, two.dqkv, "dqkv");
  const auto narrow = run(s, as<Bfloat>(qkv), as<Bfloat>(dout)),
             again = run(s, as<Bfloat>(qkv), as<Bfloat>(dout));
  expect_equal_bits(narrow.out, again.out, "out");
  expect_equal_bits(narrow.dqkv, again.dqkv, "dqkv");
}

}  // namespace
}  // namespace assay::test
