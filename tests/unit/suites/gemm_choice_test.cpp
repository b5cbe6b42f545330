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

}  // namespace
}  // namespace assay
