// SPDX-License-Identifier: Apache-2.0
// What the training suite plans on GPUs, and what --train.zero and --train.comm-pressure ask for.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/error.hpp"
#include "suites/train/analysis.hpp"
#include "suites/train/train_plan.hpp"
#include "suites/train/train_suite.hpp"
#include "suites/train/train_work.hpp"
#include "tests/unit/gemm_memory_fakes.hpp"

namespace assay {
namespace {

/// Every option is in the table, given or not.
Config plan_config(const TrainSuite& suite, Level level,
                   const std::map<std::string, std::vector<std::string>>& given = {}) {
  Config config = fakes::config_of(suite, level, given);
  for (const OptionSpec& spec : suite.options())
    if (!given.contains(spec.name) && spec.default_text.empty()) config.options.set(spec, {});
  return config;
}

TEST(TrainPlan, GpusTrainLargerModelsInBf16) {
  TrainSuite suite;
  const Topology topology = fakes::cluster({1, 4, 1, 2});
  const Config quick = plan_config(suite, Level::quick), standard = plan_config(suite, Level::standard);
  constexpr std::uint64_t gib = std::uint64_t{1} << 30;
  auto cases = train::plan_cases({quick, topology, 72 * gib, 7}, true);
  EXPECT_TRUE(fakes::legal_and_unique(cases));
  EXPECT_EQ(fakes::find(cases, "tiny-together"), nullptr);
  ASSERT_NE(fakes::find(cases, "small-together"), nullptr);
  EXPECT_EQ(fakes::find(cases, "small-together")->parameters.at("type"), "bf16");
  EXPECT_NEAR(static_cast<double>(train::preset_named("small", true).model.parameters()), 124e6, 1e6);
  EXPECT_LE(fakes::expected_s(cases), 60);
  // The depth goes by halves until it fits.
  std::size_t last = 33;
  for (const std::uint64_t memory :
       {std::uint64_t{400}, std::uint64_t{180}, std::uint64_t{72}, std::uint64_t{36}}) {
    cases = train::plan_cases({standard, topology, memory * gib, 7}, true);
    const Case* c = fakes::find(cases, "slice-7b-together");
    ASSERT_NE(c, nullptr);
    EXPECT_EQ(c->not_applicable, "") << memory;
    EXPECT_LE(c->bytes, memory * gib);
    const auto layers = c->parameters.at("layers").get<std::size_t>();
    EXPECT_LT(layers, last) << memory;
    EXPECT_EQ(layers & (layers - 1), 0u) << layers;
    last = layers;
  }
  cases = train::plan_cases({standard, topology, 4 * gib, 7}, true);
  EXPECT_NE(fakes::find(cases, "slice-7b-together")->not_applicable, "");
}

/// The time to tune is one for all models.
TEST(TrainPlan, ALargeModelLeavesTimeToTuneASmallOne) {
  TrainSuite suite;
  const Config config = plan_config(suite, Level::quick, {{"train.preset", {"slice-7b", "small"}}});
  const auto cases =
      train::plan_cases({config, fakes::cluster({1, 1, 1, 2}), std::uint64_t{100} << 30, 7}, true);
  fakes::HookedDevice device;
  device.gpu = true;
  const auto products = train::products_to_tune(cases, device);
  std::map<std::string, std::size_t> first, count;
  for (std::size_t i = 0; i < products.size(); ++i) {
    first.try_emplace(products[i].key, i);
    ++count[products[i].key];
    EXPECT_GE(products[i].product.flops(), products[i > 0 ? i - 1 : 0].product.flops());
  }
  EXPECT_LT(first.at("768x16384 bf16"), first.at("4096x8192 bf16"));
  EXPECT_GE(first.at("4096x8192 bf16"), first.at("768x16384 bf16") + count.at("768x16384 bf16") / 2);
}

TEST(TrainPlan, ACheckpointThatTakesTooLongOrTooMuchHostMemoryIsLeftOut) {
  TrainSuite suite;
  Topology topology = fakes::cluster({1, 4, 1, 2});
  topology.nodes[0].memory_available_bytes = std::uint64_t{512} << 30;
  constexpr std::uint64_t gib = std::uint64_t{1} << 30;
  const auto checkpoint = [&](Level level, std::uint64_t memory, bool gpus) {
    const auto cases = train::plan_cases(
        {plan_config(suite, level, {{"train.scratch", {"/x"}}}), topology, memory, 7}, gpus);
    double required_s = 0;
    std::string out;
    for (const Case& c : cases) {
      if (c.operation != "checkpoint") continue;
      if (c.not_applicable.empty()) required_s += c.expected_s();
      out += c.name + ": " + (c.not_applicable.empty() ? "planned" : c.not_applicable) + "\n";
    }
    EXPECT_LT(required_s, level_budget_s(level, 0) / 2) << out;
    return out;
  };
  EXPECT_NE(checkpoint(Level::quick, 70 * gib, true).find("planned"), std::string::npos);
  EXPECT_NE(checkpoint(Level::standard, 70 * gib, true).find("over a quarter of the time"),
            std::string::npos);
  EXPECT_NE(checkpoint(Level::quick, 4 * gib, false).find("planned"), std::string::npos);
  topology.nodes[0].memory_available_bytes = 4 * gib;
  EXPECT_NE(checkpoint(Level::quick, 70 * gib, true).find("in host memory"), std::string::npos);
}

TEST(TrainPlan, OnAHostACheckpointTakesMemoryBesideItsModel) {
  TrainSuite suite;
  const Topology topology = fakes::cluster({1, 2, 1, 2});
  const Config config = plan_config(suite, Level::quick, {{"train.scratch", {"/x"}}});
  const auto checkpoint = [&](std::uint64_t memory) {
    return *fakes::find(train::plan_cases({config, topology, memory, 7}, false), "tiny-checkpoint");
  };
  const std::uint64_t model = checkpoint(std::uint64_t{1} << 30).bytes,
                      state = 12 * train::preset_named("tiny").model.parameters();
  EXPECT_EQ(checkpoint(model + state).not_applicable, "");
  EXPECT_NE(checkpoint(model + state - 1).not_applicable.find("in host memory"), std::string::npos);
  EXPECT_NE(checkpoint(model - 1).not_applicable.find("needs "), std::string::npos);
}

TEST(TrainBand, OfMoreSequencesThanWereTriedOnlyTheEntropyBoundsWhatIsLearned) {
  for (const auto& [name, most] : {std::pair{"tiny", 32u}, {"small", 16u}}) {
    const train::Preset& preset = train::preset_named(name);
    const train::BandPoint* point = preset.point_at(20);
    ASSERT_NE(point, nullptr);
    EXPECT_GT(point->lower, train::least_regret);
    EXPECT_EQ(preset.lower_edge(*point, preset.batch), point->lower);
    EXPECT_EQ(preset.lower_edge(*point, most), point->lower) << name;
    EXPECT_EQ(preset.lower_edge(*point, most + 1), train::least_regret) << name;
    for (const train::BandPoint& p : preset.band) EXPECT_GE(p.lower, train::least_regret) << name;
  }
}

TEST(TrainPlan, SharesAndPressureAreAskedForByName) {
  TrainSuite suite;
  const Topology topology = fakes::cluster({1, 4, 1, 2});
  const std::uint64_t memory = std::uint64_t{4} << 30;
  const auto plain = train::plan_cases({plan_config(suite, Level::quick), topology, memory, 7}, false);
  const Config config =
      plan_config(suite, Level::quick, {{"train.zero", {"1"}}, {"train.comm-pressure", {"0.7"}}});
  const auto cases = train::plan_cases({config, topology, memory, 7}, false);
  EXPECT_EQ(fakes::find(cases, "tiny-together")->parameters.at("zero"), 1);
  EXPECT_EQ(fakes::find(cases, "tiny-together")->parameters.at("comm_pressure"), 0.7);
  EXPECT_FALSE(fakes::find(plain, "tiny-together")->parameters.contains("zero"));
  EXPECT_EQ(fakes::find(cases, "tiny-lockstep")->parameters, fakes::find(plain, "tiny-lockstep")->parameters);
  for (const auto& wrong : {std::pair{"train.comm-pressure", "0"}, {"train.type", "bf16"}})
    EXPECT_THROW(
        train::plan_cases(
            {plan_config(suite, Level::quick, {{wrong.first, {wrong.second}}}), topology, memory, 7}, false),
        Error);
}

TEST(TrainPressure, ChoosesTokensByItsFormula) {
  train::TrainWork work;
  work.preset = train::preset_named("small", true);
  work.pressure = 0.5;
  const auto n = static_cast<double>(work.preset.model.parameters());
  // 4 N bytes on 4 ranks at 100 GB/s; a backward pass does two thirds of the FLOP.
  const double communication_s = 1.5 * 4 * n / 100e9, tokens = 8192;
  const double rate = tokens * 0.5 * 2 / 3 * work.preset.model.flops_per_token() / communication_s;
  const train::TrainWork chosen = train::with_pressure(work, rate, 100e9, 4);
  EXPECT_EQ(chosen.preset.batch, 8u);
  EXPECT_EQ(chosen.passes, 2);
  EXPECT_EQ(chosen.tokens(), work.preset.tokens());
  EXPECT_EQ(train::with_pressure(work, 1000 * rate, 100e9, 4).preset.batch, 16u) << "not more than planned";
  EXPECT_EQ(train::with_pressure(work, rate / 1000, 100e9, 4).passes, 16) << "at least one";
  EXPECT_EQ(train::with_pressure(work, rate, 0, 1).passes, 1) << "nothing to reduce";
  work.pressure = 0;
  EXPECT_EQ(train::with_pressure(work, rate, 100e9, 4).preset.batch, 16u) << "not asked for";
}

TEST(TrainShare, PartsCoverEveryElementOnce) {
  const train::TensorTable table({96, 2, 3, 48, 16});
  for (const int parts : {1, 2, 3, 7}) {
    std::vector<int> owners(table.size(), 0);
    std::size_t size = 0;
    for (int part = 0; part < parts; ++part) {
      const train::Share share(table, {NumType::fp32, part, parts});
      if (part > 0) {
        EXPECT_EQ(share.size(), size);
      }
      size = share.size();
      std::size_t end = 0;
      for (const train::Piece& piece : share.pieces()) {
        EXPECT_GE(piece.at, end) << "pieces overlap";
        EXPECT_EQ(piece.at % 16 + piece.offset % 16, 0u) << "not aligned";
        end = piece.at + piece.size;
        if (piece.shared && part > 0) continue;
        for (std::size_t i = 0; i < piece.size; ++i) ++owners[piece.offset + i];
      }
      EXPECT_LE(end, share.size());
    }
    for (const int n : owners) ASSERT_EQ(n, 1) << parts;
  }
}

}  // namespace
}  // namespace assay
