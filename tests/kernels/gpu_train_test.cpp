// SPDX-License-Identifier: Apache-2.0
// The whole model on a GPU, real or emulated: in fp32 what the host computes, in bf16 near it, and every bit
// that flips is seen and found.
#include <gtest/gtest.h>

#include <cmath>

#include "device/corrupt.hpp"
#include "suites/train/audit.hpp"
#include "suites/train/vote.hpp"
#include "tests/kernels/gpu_train_rig.hpp"

namespace assay::train {
namespace {

/// Of tensor `t`, |a - b| over |b|.
double distance(const Tensor& t, const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, squares = 0;
  for (std::size_t i = t.offset; i < t.offset + t.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    squares += std::pow(static_cast<double>(b[i]), 2);
  }
  return squares > 0 ? std::sqrt(difference / squares) : std::sqrt(difference);
}

TEST_F(GpuTrain, Fp32IsTheHostsModel) {
  Rig host = Rig::host(), gpu = Rig::cuda(NumType::fp32);
  EXPECT_EQ(gpu.gpt->parameter_digest(), host.gpt->parameter_digest()) << "the same bits to begin with";
  for (int step = 0; step < 3; ++step) {
    const auto first = static_cast<std::uint64_t>(2 * step);
    const double want = host.pass(first);
    EXPECT_NEAR(gpu.pass(first), want, 1e-4 * want);
    const auto have = gpu.gradients(), wanted = host.gradients();
    for (const Tensor& t : host.gpt->table().tensors())
      EXPECT_LT(distance(t, have, wanted), 1e-3) << t.name << " step " << step;
    EXPECT_NEAR(gpu.gpt->gradient_squares() / host.gpt->gradient_squares(), 1, 1e-3);
    // From equal gradients the update has equal bits.
    gpu.device->copy_to_device(gpu.gpt->gradients(), wanted.data(), wanted.size() * sizeof(float));
    EXPECT_EQ(gpu.gpt->gradient_squares(), host.gpt->gradient_squares());
    gpu.update(step + 1);
    host.update(step + 1);
    ASSERT_EQ(gpu.gpt->parameter_digest(), host.gpt->parameter_digest()) << "step " << step;
  }
}

TEST_F(GpuTrain, Bf16IsNearFp32AndLearns) {
  Rig host = Rig::host(), gpu = Rig::cuda(NumType::bf16);
  double begin = 0, end = 0;
  constexpr int steps = 9;
  for (int step = 0; step < steps; ++step) {
    const auto first = static_cast<std::uint64_t>(2 * (step % 3));
    const double loss = gpu.pass(first);
    if (step == 0) {
      const double want = host.pass(first);
      // A product of vectors that were rounded to 2^-8 is wrong by about that; a dozen of them follow on each
      // other.
      EXPECT_NEAR(loss, want, 12 * 0x1p-8 * want);
      const auto have = gpu.gradients(), wanted = host.gradients();
      for (const Tensor& t : host.gpt->table().tensors())
        EXPECT_LT(distance(t, have, wanted), 12 * 0x1p-8) << t.name;
    }
    if (step < 3) begin += loss / 3;
    if (step >= steps - 3) end += loss / 3;
    gpu.update(step + 1);
  }
  EXPECT_LT(end, begin - 0.2);
}

TEST_F(GpuTrain, AuditAcceptsBothTypesAndFindsADoubledGradient) {
  for (const NumType type : {NumType::fp32, NumType::bf16}) {
    Rig gpu = Rig::cuda(type);
    const std::size_t counted = batch * gpu.source.counted(shape.length);
    int judged = 0;
    for (int step = 0; step < 3; ++step) {
      const auto first = static_cast<std::uint64_t>(2 * step);
      gpu.gpt->save();
      gpu.pass(first);
      gpu.update(step + 1);
      kernels::AdamW rule;
      rule.rate = 3e-3f;
      StepAudit audit(*gpu.gpt, RandomStream(4, "audit").child(std::to_string(step)));
      EXPECT_EQ(audit.update(rule.at(step + 1)), "") << step;
      gpu.gpt->restore();
      gpu.pass(first);
      EXPECT_EQ(audit.gradients(counted), "") << step;
      for (const Tensor& t : gpu.gpt->table().tensors()) {
        gpu.pass(first);
        gpu.gpt->ops().scale(gpu.gpt->gradients() + t.offset, 2.0f, t.size());
        const std::optional<double> ratio = gradient_ratio(*gpu.gpt, t, counted);
        if (!ratio) continue;
        ++judged;
        EXPECT_LT(*ratio, 0.8) << t.name << " step " << step;
      }
      gpu.pass(first);
      gpu.update(step + 1);
    }
    EXPECT_GT(judged, type == NumType::fp32 ? 15 : 5) << "of 30 tensors";
  }
}

TEST_F(GpuTrain, RepeatsBitByBitAndComesBack) {
  for (const NumType type : {NumType::fp32, NumType::bf16}) {
    Rig one = Rig::cuda(type), two = Rig::cuda(type);
    one.pass(0);
    two.pass(0);
    EXPECT_EQ(one.digests(), two.digests());
    const std::uint64_t before = one.gpt->parameter_digest();
    one.gpt->save();
    one.update(1);
    const std::uint64_t after = one.gpt->parameter_digest();
    EXPECT_NE(after, before);
    one.gpt->restore();
    EXPECT_EQ(one.gpt->parameter_digest(), before);
    one.pass(0);
    EXPECT_EQ(one.digests(), two.digests());
    one.update(1);
    EXPECT_EQ(one.gpt->parameter_digest(), after);
  }
}

TEST_F(GpuTrain, EveryFlippedBitOfAGradientIsFoundInItsBucket) {
  Rig gpu = Rig::cuda(NumType::bf16);
  gpu.pass(0);
  const Digests right = gpu.digests();
  const RandomStream random(11, "flips");
  int located = 0;
  for (std::uint64_t n = 0; n < 100; ++n) {
    const std::size_t element = random.below(2 * n, gpu.gpt->table().size());
    const auto bit = static_cast<unsigned>(random.below(2 * n + 1, 32));
    flip_bit(*gpu.device, gpu.gpt->gradients(), element, sizeof(float), bit);
    Digests ranks = right;
    const Digests wrong = gpu.digests();
    ranks.insert(ranks.end(), wrong.begin(), wrong.end());
    ranks.insert(ranks.end(), right.begin(), right.end());
    const auto dissents = vote(ranks, right.size());
    located += dissents.size() == 1 && dissents[0].rank == 1 &&
                       dissents[0].column == gpu.gpt->table().bucket_of(element)
                   ? 1
                   : 0;
    flip_bit(*gpu.device, gpu.gpt->gradients(), element, sizeof(float), bit);
  }
  EXPECT_EQ(located, 100);
  EXPECT_EQ(gpu.digests(), right);
}

/// Wrong masters and wrong weights are both seen.
TEST_F(GpuTrain, TheDigestOfParametersCoversMastersAndWeights) {
  Rig gpu = Rig::cuda(NumType::bf16);
  const std::uint64_t right = gpu.gpt->parameter_digest();
  const std::size_t n = gpu.gpt->table().size();
  for (const std::size_t element : {std::size_t{0}, n / 2, n - 1}) {
    for (const bool master : {true, false}) {
      void* at = master ? static_cast<void*>(gpu.gpt->parameters()) : gpu.gpt->weights();
      const std::size_t bytes = master ? sizeof(float) : gpu.gpt->element_bytes();
      flip_bit(*gpu.device, at, element, bytes, 3);
      EXPECT_NE(gpu.gpt->parameter_digest(), right);
      flip_bit(*gpu.device, at, element, bytes, 3);
    }
  }
  EXPECT_EQ(gpu.gpt->parameter_digest(), right);
}

TEST_F(GpuTrain, SeveralPassesAddUp) {
  for (const NumType type : {NumType::fp32, NumType::bf16}) {
    Rig rig = Rig::cuda(type);
    const Storage storage{type, 0, 1, true};
    EXPECT_GT(Gpt::bytes(shape, batch, storage), Gpt::bytes(shape, batch, {type, 0, 1, false}));
    const auto gpu = first_gpu();
    Device& device = *gpu;
    device.reserve(Gpt::bytes(shape, batch, storage));
    Gpt gpt(device, shape, batch, device.arena(), storage);
    std::vector<float> values(gpt.table().size());
    for (int pass = 0; pass < 3; ++pass) {
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>((i + static_cast<std::size_t>(pass) * 7) % 50);
      device.copy_to_device(gpt.gradients(), values.data(), values.size() * sizeof(float));
      gpt.gather(pass, 3);
    }
    device.copy_to_host(values.data(), gpt.gradients(), values.size() * sizeof(float));
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(values[i], static_cast<float>(i % 50 + (i + 7) % 50 + (i + 14) % 50)) << i;
  }
}

}  // namespace
}  // namespace assay::train
