// SPDX-License-Identifier: Apache-2.0
#include "suites/gemm/gemm_suite.hpp"
#include "measure/sizing.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "suites/gemm/gemm_work.hpp"
#include "tests/unit/gemm_memory_fakes.hpp"
#include "workload/compare_bits.hpp"

namespace assay {
namespace {

using namespace fakes;
constexpr std::uint64_t gib = std::uint64_t{1} << 30;
using Options = std::map<std::string, std::vector<std::string>>;

std::vector<Case> plan_of(Level level, const Shape& shape, std::uint64_t bytes = 4 * gib,
                          const Options& options = {}) {
  const GemmSuite suite;
  const Config config = config_of(suite, level, options);
  const Topology topology = cluster(shape);
  return suite.plan({config, topology, bytes, 1});
}

const std::vector<Shape> shapes = {{1, 1, 1, 2}, {1, 4, 1, 4}, {1, 64, 1, 2}, {2, 2, 2, 8}, {2, 8, 2, 48}};

TEST(GemmPlan, NamesAreLegalAndBytesFit) {
  for (const Level level : {Level::smoke, Level::quick, Level::standard, Level::extended, Level::soak})
    for (const Shape& shape : shapes)
      for (const std::uint64_t bytes : {4 * gib, gib / 8, gib / 256}) {
        const auto cases = plan_of(level, shape, bytes);
        EXPECT_TRUE(legal_and_unique(cases));
        for (const Case& c : cases) {
          if (c.not_applicable.empty()) {
            EXPECT_LE(c.bytes, bytes) << c.name;
          }
          EXPECT_GT(c.seconds, 0) << c.name;
          EXPECT_LE(c.min_seconds, c.seconds) << c.name;
          EXPECT_EQ(c.serial, c.parameters.at("mode") == "alone") << c.name;
        }
      }
}

TEST(GemmPlan, EveryLevelRequiresBothTypesTogetherAndExact) {
  const std::map<Level, std::string> main = {{Level::smoke, "n1024"},
                                             {Level::quick, "n2048"},
                                             {Level::standard, "n4096"},
                                             {Level::extended, "n8192"}};
  for (const auto& [level, size] : main) {
    const auto cases = plan_of(level, {1, 2, 1, 32}, 16 * gib);
    for (const std::string type : {"fp32", "fp64"})
      for (const std::string& name : {type + "-" + size + "-together", type + "-exact-n512"}) {
        const Case* c = find(cases, name);
        ASSERT_NE(c, nullptr) << name;
        EXPECT_TRUE(c->required) << name;
      }
    const Case* alone = find(cases, "fp32-" + size + "-alone");
    ASSERT_NE(alone, nullptr);
    EXPECT_TRUE(alone->required);
    EXPECT_EQ(alone->turns, 2);
    EXPECT_EQ(alone->entities, 2);
  }
  EXPECT_NE(find(plan_of(Level::extended, {1, 2, 1, 32}, 16 * gib), "fp32-sustained-n8192-together"),
            nullptr);
}

TEST(GemmPlan, SmokeAndQuickAreShortOnTwoCores) {
  EXPECT_LT(expected_s(plan_of(Level::smoke, {1, 2, 1, 2})), 3.5);
  EXPECT_LT(expected_s(plan_of(Level::quick, {1, 2, 1, 2})), 32);
}

TEST(GemmPlan, CrowdedCoresGetSmallerMatricesAndTurnsAreSampled) {
  const auto cases = plan_of(Level::smoke, {1, 64, 1, 2}, gib / 8);
  EXPECT_EQ(find(cases, "fp32-n1024-together"), nullptr);
  EXPECT_NE(find(cases, "fp32-n512-together"), nullptr);
  const Case* alone = find(cases, "fp32-n512-alone");
  ASSERT_NE(alone, nullptr);
  EXPECT_EQ(alone->turns, 8);
  EXPECT_EQ(alone->entities, 8);
  EXPECT_LT(expected_s(cases), 12);
}

TEST(GemmPlan, OptionsChooseAndBadOnesAreNamed) {
  const auto cases = plan_of(Level::quick, {}, gib,
                             {{"gemm.dtypes", {"fp64"}}, {"gemm.sizes", {"300"}}, {"gemm.modes", {"alone"}}});
  EXPECT_NE(find(cases, "fp64-n300-alone"), nullptr);
  EXPECT_EQ(find(cases, "fp64-n300-together"), nullptr);
  for (const Case& c : cases) EXPECT_TRUE(c.name.starts_with("fp64")) << c.name;
  for (const char* bad : {"abc", "0", "-5", "99999999999999999999", "12x"}) {
    try {
      plan_of(Level::quick, {}, gib, {{"gemm.sizes", {bad}}});
      ADD_FAILURE() << bad << " was accepted";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::usage);
      EXPECT_NE(std::string(e.what()).find(bad), std::string::npos) << e.what();
    }
  }
  const auto foreign = plan_of(Level::quick, {}, gib, {{"gemm.dtypes", {"bf16"}}});
  ASSERT_EQ(foreign.size(), 1u);
  EXPECT_FALSE(foreign[0].not_applicable.empty());
}

TEST(GemmPlan, BatchOfAGpuTakesTwentyMillisecondsAtItsBound) {
  Topology topology = cluster({});
  topology.device_kind = "cuda";
  Gpu h100;
  h100.compute = "9.0", h100.shader_cores = 16896, h100.sm_clock_max_hz = 1.83e9;
  topology.nodes[0].gpus = {h100};
  topology.ranks[0].gpu = 0;
  const GemmSuite suite;
  const Config config = config_of(suite, Level::quick, {{"gemm.sizes", {"8192"}}, {"gemm.dtypes", {"bf16"}}});
  const auto cases = suite.plan({config, topology, 40 * gib, 1});
  const Case* c = find(cases, "bf16-n8192-together");
  ASSERT_NE(c, nullptr);
  EXPECT_NEAR(c->parameters.at("batch_flop").get<double>(), 20e-3 * 989e12, 20e-3 * 1e12);
  const double product = 2.0 * 8192 * 8192 * 8192, result_bytes = 2.0 * 8192 * 8192;
  EXPECT_GE(static_cast<double>(c->bytes), 20e-3 * 989e12 / product * result_bytes) << "all results are kept";
}

TEST(GemmPlan, WhatDoesNotFitSaysWhy) {
  const auto cases = plan_of(Level::quick, {}, std::uint64_t{20} << 20, {{"gemm.sizes", {"2048"}}});
  const Case* c = find(cases, "fp32-n2048-together");
  ASSERT_NE(c, nullptr);
  EXPECT_NE(c->not_applicable.find("needs"), std::string::npos);
}

TEST(GemmLayout, MatricesDoNotOverlapAndRotateThroughTheCache) {
  const auto layout = workload::make_product_layout(NumType::fp64, {256, 256, 256}, 16u << 20, gib);
  EXPECT_GE(layout.inputs, 2u);
  EXPECT_GE(layout.bytes(), 8u << 20);
  EXPECT_GE(layout.b(0) - layout.a(0), layout.result_bytes);
  EXPECT_GE(layout.c(0) - layout.b(layout.inputs - 1), layout.result_bytes);
  EXPECT_LE(layout.c(layout.outputs - 1) + layout.result_bytes, layout.bytes());
}

Case series_case(const char* mode, std::size_t n = 64, double seconds = 0.05) {
  Case c;
  c.suite = "gemm";
  c.name = "fp32-n" + std::to_string(n) + "-" + mode;
  c.bytes = std::uint64_t{64} << 20;
  c.seconds = seconds;
  c.turns = 1;
  c.parameters = {{"dtype", "fp32"}, {"mode", mode}, {"n", n}, {"cache_bytes", 1 << 16}};
  return c;
}

Case exact_case(const char* type, std::size_t n) {
  Case c;
  c.suite = "gemm";
  c.name = std::string(type) + "-exact-n" + std::to_string(n);
  c.operation = "exact";
  c.parameters = {{"dtype", type}, {"mode", "together"}, {"n", n}, {"rounds", 2}};
  return c;
}

Suite& suite() {
  static GemmSuite it;
  return it;
}

Bench bench() { return Bench(config_of(GemmSuite(), Level::smoke)); }

/// Half speed in one sample of twenty is named out of a hundred samples and never out of thirty
/// (tests/operating).
TEST(Sampling, FromStandardOnAHundredSamplesWhereTheTimeAllowsThem) {
  for (const Level level : {Level::standard, Level::extended, Level::soak}) {
    Bench b(config_of(GemmSuite(), level));
    b.with(Case(), [](Context& context) {
      SamplingPlan plan = context.sampling(30);
      EXPECT_GE(plan.min_samples, 100U);
      int runs = 0;
      Operation operation;
      operation.run = [&](std::uint64_t) { ++runs; };
      operation.timed_elsewhere = [] {
        return 1e-3;
      };  // as even as can be: nothing but the number asks for more
      plan.warmup_seconds = 1e-4;
      EXPECT_GE(sample(operation, plan).seconds.size(), 100U);
    });
  }
}

TEST(GemmRun, HealthySeriesHaveRateEfficiencyAndDigest) {
  for (const char* mode : {"alone", "together"}) {
    Bench b = bench();
    b.run(suite(), series_case(mode));
    ASSERT_EQ(b.record.rows_.size(), 1u);
    const auto& row = b.record.rows_[0];
    EXPECT_EQ(b.record.state_, results::CaseState::pass) << b.record.reason_;
    EXPECT_GE(row.t.size(), 1u);
    ASSERT_EQ(row.values.at("throughput").size(), row.t.size());
    for (const double v : row.values.at("throughput")) EXPECT_GT(v, 0);
    ASSERT_EQ(row.values.at("efficiency").size(), 1u);
    EXPECT_GT(row.values.at("efficiency")[0], 0);
    EXPECT_NE(row.integers.at("digest").at(0), 0u);
    EXPECT_GT(b.record.timed_s_, 0);
    EXPECT_GT(b.record.verify_s_, 0);
  }
}

TEST(GemmRun, EqualRanksHaveEqualDigests) {
  std::uint64_t digests[2];
  for (auto& digest : digests) {
    Bench b = bench();
    b.run(suite(), series_case("alone"));
    digest = b.record.rows_.at(0).integers.at("digest").at(0);
  }
  EXPECT_EQ(digests[0], digests[1]);
}

TEST(GemmRun, ASeriesCutShortHasTheSameDigest) {
  std::uint64_t digests[2];
  for (int i = 0; i < 2; ++i) {
    Bench b = bench();
    Case c = series_case("alone");
    c.parameters["cache_bytes"] = 1 << 24;  // more input pairs than two repetitions reach
    c.seconds = i == 0 ? 0.2 : 1e-9;
    b.run(suite(), c);
    digests[i] = b.record.rows_.at(0).integers.at("digest").at(0);
    EXPECT_GE(b.record.rows_.at(0).integers.at("repetitions").at(0),
              1U);  // of this device: others may differ
  }
  EXPECT_EQ(digests[0], digests[1]);
}

TEST(GemmRun, MeasuredAgainItHasTheSameInputsAndDigest) {
  std::uint64_t digests[3];
  std::string inputs[3];
  for (int i = 0; i < 3; ++i) {
    Bench b = bench();
    Case c = series_case("alone");
    if (i == 1) {
      RetestOrder again;
      again.path = c.path();
      again.devices = {b.entities().device_of_rank(0)};
      again.samples = 3;
      c.retest = std::make_shared<const RetestOrder>(again);
      c.name += ".c1";
    }
    if (i == 2) c.name += ".p2";  // a repeat of the plan draws its own
    b.run(suite(), c);
    for (const auto& row : b.record.rows_) digests[i] = row.integers.at("digest").at(0);
    inputs[i] = b.record.parameters_.at("inputs");
  }
  EXPECT_EQ(digests[0], digests[1]);
  EXPECT_EQ(inputs[0], inputs[1]);
  EXPECT_NE(digests[0], digests[2]);
  EXPECT_NE(inputs[0], inputs[2]);
}

TEST(GemmRun, OneFlippedBitInATimedResultIsCaughtAndLocated) {
  std::optional<Bench> b;
  bool flipped = false;
  ASSERT_TRUE(in_time([&](double seconds) {
    b.emplace(config_of(suite(), Level::smoke));
    // Warm-up steps are 1, 2, 4, ... calls between checks; batches of 3 are timed ones.
    int in_batch = 0, last_batch = 0, digests = 0;
    b->device.after_gemm = [&](void* c) {
      if (std::exchange(digests, b->device.digests) != b->device.digests)
        last_batch = std::exchange(in_batch, 0);
      ++in_batch;
      if (last_batch != 3 || std::exchange(flipped, true)) return;
      static_cast<std::uint32_t*>(c)[1234] ^= 1u << 20;
    };
    b->run(suite(), series_case("together", 64, seconds));
    return flipped;
  }));
  EXPECT_EQ(b->record.state_, results::CaseState::fail);
  EXPECT_EQ(b->record.miscompares(), 1u);
  ASSERT_EQ(b->record.records_.size(), 1u);
  const auto& e = b->record.records_[0];
  EXPECT_EQ(e.index, 1234u);
  EXPECT_EQ(e.expected ^ e.actual, 1u << 20);
  EXPECT_EQ(e.reread, e.actual);
}

TEST(GemmRun, AGemmThatStopsWritingIsCaught) {
  std::optional<Bench> b;
  int calls = 0;
  ASSERT_TRUE(in_time([&](double seconds) {
    b.emplace(config_of(suite(), Level::smoke));
    calls = 0;
    b->device.after_gemm = [&](void*) { b->device.drop_gemm = ++calls >= 20; };
    b->run(suite(), series_case("alone", 64, seconds));
    return calls > 20;
  }));
  EXPECT_EQ(b->record.state_, results::CaseState::fail);
}

TEST(GemmRun, ExactPassAndSelftest) {
  for (const char* type : {"fp32", "fp64"}) {
    Bench b = bench();
    b.run(suite(), exact_case(type, 96));
    EXPECT_EQ(b.record.state_, results::CaseState::pass) << type << ": " << b.record.reason_;
    ASSERT_EQ(b.record.rows_.size(), 1u);
    EXPECT_EQ(b.record.rows_[0].values.at("errors"), (std::vector<double>{0, 0}));
    ASSERT_EQ(b.record.selftest_.size(), 1u);
    const auto& s = b.record.selftest_[0];
    EXPECT_EQ(s.checker, "gemm");
    EXPECT_EQ(s.injected, 1);
    EXPECT_EQ(s.caught, 1);
    EXPECT_EQ(s.located, 1);
    EXPECT_EQ(s.counted, 1);
  }
}

TEST(GemmRun, ExactPassCountsAndLocatesEveryWrongElement) {
  Bench b = bench();
  bool first = true;
  b.device.after_gemm = [&](void* c) {
    if (!std::exchange(first, false)) return;
    auto* values = static_cast<double*>(c);
    values[3] = -values[3];
    values[9215] = std::numeric_limits<double>::quiet_NaN();
  };
  b.run(suite(), exact_case("fp64", 96));
  EXPECT_EQ(b.record.state_, results::CaseState::fail);
  EXPECT_EQ(b.record.miscompares(), 2u);
  ASSERT_EQ(b.record.records_.size(), 2u);
  EXPECT_EQ(b.record.records_[0].index, 3u);
  EXPECT_EQ(b.record.records_[1].index, 9215u);
  EXPECT_EQ(b.record.rows_.at(0).values.at("errors"), (std::vector<double>{2, 0}));
  EXPECT_EQ(b.record.selftest_.at(0).counted, 1);
}

TEST(GemmRun, ADeviceThatIsAllWrongDoesNotAccuseTheChecker) {
  Bench b = bench();
  b.device.after_gemm = [](void* c) { std::memset(c, 0x5a, std::size_t{96} * 96 * sizeof(double)); };
  b.run(suite(), exact_case("fp64", 96));
  EXPECT_EQ(b.record.rows_.at(0).values.at("errors"), (std::vector<double>{9216, 9216}));
  const auto& s = b.record.selftest_.at(0);
  EXPECT_EQ(std::vector({s.caught, s.located, s.counted}), std::vector({s.injected, s.injected, s.injected}));
}

TEST(GemmCheck, NanEqualsOnlyItselfAndZeroHasASign) {
  Bench b = bench();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  double actual[3] = {nan, 0.0, 1.0}, expected[3] = {nan, -0.0, nan};
  const auto wrong = workload::compare_bits(b.device, actual, expected, 3, sizeof(double));
  EXPECT_EQ(wrong.count, 2u);
  EXPECT_EQ(wrong.first.at(0).index, 1u);
  EXPECT_EQ(wrong.first.at(1).index, 2u);
}

TEST(GemmCheck, CountsBeyondWhatItRecords) {
  Bench b = bench();
  const std::vector<float> actual(200000, 1.0f), expected(200000, 2.0f);
  const auto wrong = workload::compare_bits_on_device(b.device, actual.data(), expected.data(), actual.size(),
                                                      sizeof(float));
  EXPECT_EQ(wrong.count, 200000u);
  EXPECT_EQ(wrong.first.size(), workload::WrongElements::capacity);
}

TEST(GemmRun, PeakIsPositiveAndWhatADeviceThrowsArrives) {
  Bench b = bench();
  Case c = series_case("together");
  c.name = "fp64-peak-together";
  c.parameters = {{"dtype", "fp64"}, {"mode", "together"}};
  b.run(suite(), c);
  ASSERT_EQ(b.record.rows_.size(), 1u);
  EXPECT_EQ(b.record.rows_[0].values.at("throughput").size(), b.record.rows_[0].t.size());
  for (const char* mode : {"alone", "together"}) {
    Bench broken = bench();
    broken.device.after_gemm = [](void*) { throw Error(ErrorKind::device, "the device fell off"); };
    EXPECT_THROW(broken.run(suite(), series_case(mode)), Error);
  }
}

TEST(GemmSizing, OneProductKeepsItsShareAtAnyRate) {
  for (const std::size_t n : {256U, 1024U, 8192U})
    for (double rate = 1e3; rate < 2e15; rate *= 10)
      for (const double share_s : {0.1, 0.35, 5.0}) {
        const auto seconds = [&](std::size_t size) {
          return 2 * std::pow(static_cast<double>(size), 3) / rate;
        };
        const std::size_t small = n / size_probe_divisor, fit = fitted_size(n, seconds(small), share_s);
        EXPECT_TRUE(fit == n || fit == n / 2 || fit == small);
        if (seconds(n) <= share_s) {
          EXPECT_EQ(fit, n) << rate;
        }
        if (fit != small) {
          EXPECT_LE(seconds(fit), 1.01 * size_patience * share_s) << rate;
        }
        if (seconds(small) > share_s) {
          EXPECT_EQ(fit, small) << rate;
        }
      }
}

}  // namespace
}  // namespace assay
