// SPDX-License-Identifier: Apache-2.0
#include "suites/gemm/algorithms.hpp"
#include "suites/gemm/gemm_suite.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "tests/unit/gemm_memory_fakes.hpp"

namespace assay {
namespace {

using namespace fakes;

Case small_case(const char* name, const char* operation) {
  Case c;
  c.suite = "gemm";
  c.name = name;
  c.operation = operation;
  c.bytes = std::uint64_t{64} << 20;
  c.seconds = 0.05;
  c.parameters = {{"dtype", "fp32"}, {"mode", "together"}};
  return c;
}

TEST(GemmChoice, ABestShapeThatNobodyHadTimeToFindIsSkipped) {
  Case c = small_case("fp32-best-together", "best");
  c.parameters["search"] = 12;
  GemmSuite gemm;
  Bench b(config_of(gemm, Level::standard));
  SelfCommunicator world;
  gemm.prepare({c}, config_of(gemm, Level::standard), b.device, world, [] { return false; });
  b.run(gemm, c);
  EXPECT_EQ(b.record.state_, results::CaseState::skip);
  EXPECT_NE(b.record.reason_.find("no shape"), std::string::npos) << b.record.reason_;
  EXPECT_TRUE(b.record.rows_.empty());
}

TEST(GemmChoice, ADeviceWithoutAnAlgorithmHasTheShapeOfAll) {
  Case c = small_case("fp32-n64-together", "product");
  c.parameters["n"] = 64;
  Bench b(config_of(GemmSuite(), Level::standard));
  b.device.gpu = true;
  int calls = 0;
  b.device.tuned = [&]() -> GemmAlgorithm {
    if (++calls > 1) throw Error(ErrorKind::device, "no algorithm");
    return {"fastest", 1, {}};
  };
  b.device.refuses_algorithms = true;
  SelfCommunicator world;
  const auto choices = gemm::choose({c}, 1, b.device, world, [] { return true; });
  ASSERT_TRUE(choices.contains(c.path()));
  EXPECT_EQ(choices.at(c.path()).shape.n, 64U);
  EXPECT_TRUE(choices.at(c.path()).algorithm.starts_with("own:"));
}

TEST(GemmChoice, AHostHasNothingToChooseFromAndFillsNoOperands) {
  Case c = small_case("fp32-n512-together", "product");
  c.parameters["n"] = 512;
  Bench b(config_of(GemmSuite(), Level::standard));
  int asked = 0;
  b.device.tuned = [&]() -> GemmAlgorithm {
    ++asked;
    return {"fastest", 1, {}};
  };
  SelfCommunicator world;
  EXPECT_TRUE(gemm::choose({c}, 1, b.device, world, [] { return true; }).empty());
  EXPECT_EQ(asked, 0);
  EXPECT_LT(b.device.arena().size(), std::size_t{3} * 512 * 512 * sizeof(float));
}

/// A segment of 30 min leaves four minutes for retests.
TEST(GemmPlan, ASustainedSeriesIsMeasuredAgainInAPartOfItsTime) {
  const GemmSuite gemm;
  const Config config = config_of(gemm, Level::soak);
  ASSERT_DOUBLE_EQ(config.budget_s(), 1800);
  const auto cases = gemm.plan({config, cluster({1, 2, 1, 32}), std::uint64_t{16} << 30, 1});
  const Case* c = find(cases, "fp32-sustained-n4096-together");
  ASSERT_NE(c, nullptr);
  EXPECT_DOUBLE_EQ(c->seconds, 450);
  EXPECT_DOUBLE_EQ(c->retest_seconds, 60);
  EXPECT_LE(c->min_seconds, c->retest_seconds);
}

}  // namespace
}  // namespace assay
