// SPDX-License-Identifier: Apache-2.0
// The audit of a training step: a healthy step passes at every step count, each broken part of one is named.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/system.hpp"
#include "suites/train/audit.hpp"
#include "suites/train/preset.hpp"
#include "suites/train/train_suite.hpp"
#include "tests/unit/gemm_memory_fakes.hpp"

namespace assay {
namespace {

CaseRecord train(int steps, const std::string& broken) {
  TrainSuite suite;
  std::map<std::string, std::vector<std::string>> given{{"train.steps", {std::to_string(steps)}}};
  if (!broken.empty()) given["train.break"] = {broken};
  Config config = fakes::config_of(suite, Level::quick, given);
  for (const OptionSpec& spec : suite.options())
    if (!given.contains(spec.name) && spec.default_text.empty()) config.options.set(spec, {});
  fakes::Bench bench(config);
  const auto cases = suite.plan({config, bench.topology(), 1u << 30, 7});
  const Case* c = fakes::find(cases, "tiny-together");
  bench.device.reserve(c->bytes);
  bench.run(suite, *c);
  return bench.record;
}

TEST(TrainAudit, HealthyStepPassesAtEveryCount) {
  for (const int steps : {1, 2, 10, 20}) {
    const CaseRecord record = train(steps, "");
    EXPECT_EQ(record.state_, results::CaseState::pass) << steps << ": " << record.reason_;
    EXPECT_EQ(record.parameters_.at("audited"), "update, reduction, gradients");
    EXPECT_EQ(record.parameters_.at("regret_judged"), false);
    ASSERT_EQ(record.events_.size(), 1u);
    EXPECT_NE(record.events_[0].text.find("at least 100 steps"), std::string::npos) << record.events_[0].text;
  }
}

TEST(TrainAudit, BrokenTrainingFailsAtEveryCount) {
  for (const int steps : {1, 12}) {
    for (const auto& [broken, words] :
         {std::pair{"learning", "AdamW gives"}, std::pair{"rate", "AdamW gives"},
          std::pair{"layer", "the loss depends on it"}, std::pair{"rank", "those of rank 0 are missing"}}) {
      const CaseRecord record = train(steps, broken);
      EXPECT_EQ(record.state_, results::CaseState::fail) << broken << " at " << steps;
      EXPECT_NE(record.reason_.find(words), std::string::npos) << record.reason_;
    }
  }
}

/// A small model after one pass.
class AuditedModel : public ::testing::Test {
 protected:
  AuditedModel()
      : device_(make_host_device({allowed_cpus().front()}, {0}, false)),
        source_({32, 1, 8}, RandomStream(5, "source")) {
    device_->reserve(train::Gpt::bytes(shape, batch));
    gpt_.emplace(*device_, shape, batch, device_->arena());
    gpt_->initialise(RandomStream(5, "parameters"));
    std::vector<std::int32_t> tokens(batch * shape.length), targets(tokens.size());
    for (std::size_t b = 0; b < batch; ++b)
      source_.sequence(b, {tokens.data() + b * shape.length, shape.length},
                       {targets.data() + b * shape.length, shape.length});
    counted_ = batch * source_.counted(shape.length);
    gpt_->load(tokens, targets);
    gpt_->save();
    gpt_->forward();
    gpt_->score(1.0f / static_cast<float>(counted_));
    gpt_->backward(nullptr, nullptr);
  }
  static constexpr std::size_t batch = 4;
  const train::ModelShape shape{64, 2, 2, 32, 16};
  std::unique_ptr<Device> device_;
  train::LagSource source_;
  std::optional<train::Gpt> gpt_;
  std::size_t counted_ = 0;
};

TEST_F(AuditedModel, GradientsPredictTheLossInEveryTensor) {
  for (const train::Tensor& tensor : gpt_->table().tensors()) {
    const std::optional<double> ratio = train::gradient_ratio(*gpt_, tensor, counted_);
    const bool idle =
        tensor.name.ends_with("qkv") || tensor.name.ends_with("up");  // before a product with zeros
    ASSERT_EQ(ratio.has_value(), !idle) << tensor.name;
    EXPECT_NEAR(ratio.value_or(1), 1.0, 0.05) << tensor.name;
  }
}

TEST_F(AuditedModel, AGradientTwiceTooLargePredictsTwiceTheChange) {
  const train::Tensor& tensor = gpt_->table().layer(0, 3);
  gpt_->ops().scale(gpt_->gradients() + tensor.offset, 2.0f, tensor.size());
  EXPECT_NEAR(train::gradient_ratio(*gpt_, tensor, counted_).value_or(0), 0.5, 0.03);
}

TEST_F(AuditedModel, AWrongDirectionIsFound) {
  // The gradients of one layer's product belong to other elements.
  const train::Tensor& tensor = gpt_->table().layer(1, 1);
  float* const g = gpt_->gradients() + tensor.offset;
  std::rotate(g, g + tensor.columns + 1, g + tensor.size());
  const std::string wrong = train::StepAudit(*gpt_, RandomStream(1, "audit")).gradients(counted_);
  EXPECT_NE(wrong.find("layer1"), std::string::npos) << wrong;
}

TEST_F(AuditedModel, GradientsThatAreNotNumbersAreFound) {
  std::fill_n(gpt_->gradients() + 1000, 500, std::numeric_limits<float>::quiet_NaN());
  const kernels::AdamW rule = train::preset_named("tiny").rule(0, 1);
  gpt_->update(rule);
  const std::string wrong = train::StepAudit(*gpt_, RandomStream(1, "audit")).update(rule);
  EXPECT_NE(wrong.find("nan"), std::string::npos) << wrong;
}

TEST_F(AuditedModel, OneWrongElementOfAnUpdateIsFound) {
  const kernels::AdamW rule = train::preset_named("tiny").rule(0, 1);
  gpt_->update(rule);
  EXPECT_EQ(train::StepAudit(*gpt_, RandomStream(1, "audit")).update(rule), "");
  gpt_->parameters()[1234] += 1e-4f;
  const std::string wrong = train::StepAudit(*gpt_, RandomStream(1, "audit")).update(rule);
  EXPECT_NE(wrong.find("after the update"), std::string::npos) << wrong;
}

}  // namespace
}  // namespace assay
