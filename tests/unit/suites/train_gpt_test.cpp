// SPDX-License-Identifier: Apache-2.0
// The whole model against a naive one in fp64: loss, and every gradient against finite differences.
#include <gtest/gtest.h>

#include <numeric>

#include "base/error.hpp"
#include "base/system.hpp"
#include "device/device.hpp"
#include "kernels/fill.hpp"
#include "kernels/rmsnorm.hpp"
#include "suites/train/gpt.hpp"
#include "train_reference.hpp"

namespace assay::train {
namespace {

using reference::Values;

const ModelShape middling{64, 2, 2, 32, 12};
const ModelShape small{32, 1, 1, 16,
                       4};  ///< whose small tensors are held against finite differences element by element
constexpr std::size_t batch = 2;

double reference_loss(const ModelShape& shape, const TensorTable& table, const Values& parameters,
                      const std::vector<std::int32_t>& tokens, const std::vector<std::int32_t>& targets) {
  const std::size_t c = shape.width, rows = tokens.size();
  const auto weight = [&](const Tensor& t) {
    const auto begin = parameters.begin() + static_cast<std::ptrdiff_t>(t.offset);
    return Values(begin, begin + static_cast<std::ptrdiff_t>(t.size()));
  };
  const auto norm = [&](const Values& v) { return reference::rmsnorm(v, c, kernels::rmsnorm_epsilon); };
  const auto apply = [&](const Values& v, const Tensor& t) {
    return reference::product(v, weight(t), rows, t.rows, t.columns);
  };
  const auto add = [](Values a, const Values& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
    return a;
  };
  Values x;
  const Values embedding = weight(table.embedding());
  for (const std::int32_t token : tokens)
    for (std::size_t i = 0; i < c; ++i) x.push_back(embedding[static_cast<std::size_t>(token) * c + i]);
  for (std::size_t l = 0; l < shape.layers; ++l) {
    const Values qkv =
        reference::rope(apply(norm(x), table.layer(l, 0)), shape.heads, shape.depth(), shape.length);
    x = add(x, apply(reference::attention(qkv, batch, shape.length, shape.heads, shape.depth()),
                     table.layer(l, 1)));
    Values up = apply(norm(x), table.layer(l, 2));
    for (double& u : up) u = u > 0 ? u * u : 0;
    x = add(x, apply(up, table.layer(l, 3)));
  }
  return reference::cross_entropy(apply(norm(x), table.head()), targets.data(), rows, shape.vocabulary);
}

struct Setting {
  ModelShape shape;
  int threads;
};

class GptTest : public testing::TestWithParam<Setting> {
 protected:
  GptTest() : device_(make_host_device(cpus(), std::vector<int>(cpus().size(), 0), false)) {
    device_->reserve(Gpt::bytes(shape, batch));
    gpt_.emplace(*device_, shape, batch, device_->arena());
    const std::size_t rows = batch * shape.length;
    const RandomStream random(3, "gpt");
    for (std::size_t i = 0; i < rows; ++i) {
      tokens_.push_back(static_cast<std::int32_t>(random.below(2 * i, shape.vocabulary)));
      targets_.push_back(i % 5 == 0 ? -1
                                    : static_cast<std::int32_t>(random.below(2 * i + 1, shape.vocabulary)));
    }
    // Nothing is zero, so that no wrong gradient can hide behind a zero factor.
    parameters_.resize(gpt_->table().size());
    kernels::host::fill_uniform_fp32(parameters_.data(), parameters_.size(), 5, 0);
    for (float& p : parameters_) p *= 0.3f;
    gpt_->initialise(random);
    device_->copy_to_device(gpt_->parameters(), parameters_.data(), parameters_.size() * sizeof(float));
    gpt_->load(tokens_, targets_);
  }
  static std::vector<int> cpus() {
    std::vector<int> all = allowed_cpus();
    all.resize(static_cast<std::size_t>(std::min<int>(GetParam().threads, static_cast<int>(all.size()))));
    return all;
  }

  const ModelShape shape = GetParam().shape;
  std::unique_ptr<Device> device_;
  std::optional<Gpt> gpt_;
  std::vector<std::int32_t> tokens_, targets_;
  std::vector<float> parameters_;
};
INSTANTIATE_TEST_SUITE_P(Models, GptTest,
                         testing::Values(Setting{middling, 1}, Setting{middling, 2}, Setting{small, 1}),
                         [](const auto& made) {
                           const Setting& s = made.param;
                           return "Width" + std::to_string(s.shape.width) + "Threads" +
                                  std::to_string(s.threads);
                         });

TEST_P(GptTest, LossAndEveryGradientMatchFiniteDifferences) {
  gpt_->forward();
  const double loss = gpt_->loss(1.0f);
  const Values parameters = reference::widen(parameters_);
  const TensorTable& table = gpt_->table();
  const auto f = [&](const Values& p) { return reference_loss(shape, table, p, tokens_, targets_); };
  EXPECT_NEAR(loss, f(parameters), 1e-4 * loss);
  gpt_->backward(nullptr, nullptr);
  const RandomStream random(4, "elements");
  std::uint64_t draw = 0;
  for (const Tensor& t : table.tensors()) {
    double norm = 0;
    for (std::size_t i = 0; i < t.size(); ++i)
      norm = std::max(norm, std::abs(static_cast<double>(gpt_->gradients()[t.offset + i])));
    EXPECT_GT(norm, 1e-3) << t.name;
    const bool all = t.size() <= 1024;
    for (std::size_t n = 0; n < (all ? t.size() : 6); ++n) {
      std::size_t i = t.offset + (all ? n : random.below(draw++, t.size()));
      if (!all && &t == &table.embedding())  // of a token that occurs
        i = static_cast<std::size_t>(tokens_[draw % tokens_.size()]) * shape.width +
            random.below(draw, shape.width);
      EXPECT_NEAR(gpt_->gradients()[i], reference::derivative(f, parameters, i), 2e-4 * norm)
          << t.name << " element " << i;
    }
  }
}

TEST(GptShape, WhatTheKernelsCannotDoIsRefused) {
  const auto device = make_host_device({0}, {0}, false);
  for (const ModelShape& shape : {ModelShape{32, 1, 2, 16, 4}, ModelShape{32, 1, 1, 24, 4}}) {
    device->reserve(Gpt::bytes(shape, batch));
    EXPECT_THROW(Gpt(*device, shape, batch, device->arena()), Error);
  }
}

TEST_P(GptTest, BucketsAreReportedInOrderAndCoverEverything) {
  gpt_->forward();
  gpt_->loss(1.0f);
  std::vector<std::size_t> order;
  std::vector<std::uint64_t> digests;
  int ticks = 0;
  gpt_->backward(
      [&](std::size_t b) {
        order.push_back(b);
        digests.push_back(gpt_->gradient_digest(b));
      },
      [&] { ++ticks; });
  std::vector<std::size_t> all(shape.layers + 2);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(order, all);
  EXPECT_GT(ticks, 4 * static_cast<int>(shape.layers));
  for (std::size_t b = 0; b < order.size(); ++b)
    EXPECT_EQ(gpt_->gradient_digest(b), digests[b]) << "written after ready";
  std::size_t covered = 0;
  for (const Bucket& bucket : gpt_->table().buckets()) covered += bucket.size;
  EXPECT_EQ(covered, gpt_->table().size());
  EXPECT_EQ(gpt_->table().size(), shape.parameters());
}

TEST_P(GptTest, RepeatsBitByBitAndComesBackFromItsSnapshot) {
  gpt_->forward();
  gpt_->loss(1.0f);
  gpt_->backward(nullptr, nullptr);
  const std::uint64_t first = gpt_->gradient_digest(1), parameters = gpt_->parameter_digest();
  gpt_->save();
  gpt_->update(kernels::AdamW{}.at(1));
  const std::uint64_t updated = gpt_->parameter_digest();
  EXPECT_NE(updated, parameters);
  gpt_->restore();
  EXPECT_EQ(gpt_->parameter_digest(), parameters);
  gpt_->forward();
  gpt_->loss(1.0f);
  gpt_->backward(nullptr, nullptr);
  EXPECT_EQ(gpt_->gradient_digest(1), first);
  gpt_->update(kernels::AdamW{}.at(1));
  EXPECT_EQ(gpt_->parameter_digest(), updated);
}

TEST_P(GptTest, PlannedMemoryIsExact) {
  std::vector<std::byte> little(Gpt::bytes(shape, batch) - 1);
  EXPECT_ANY_THROW(Gpt(*device_, shape, batch, little));
}

}  // namespace
}  // namespace assay::train
