// SPDX-License-Identifier: Apache-2.0
// Which number types GPUs multiply, and for how long.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "suites/gemm/gemm_suite.hpp"
#include "tests/unit/gemm_memory_fakes.hpp"

namespace assay {
namespace {

using namespace fakes;
constexpr std::uint64_t gib = std::uint64_t{1} << 30;

TEST(GemmPlan, TypesThatAGpuLacksAreNamedAndLeftOut) {
  for (const auto& [compute, lacking] : std::map<std::string, std::set<std::string>>{
           {"7.0", {"bf16", "tf32", "fp8", "fp8_fast", "fp8_e5m2", "int8"}},
           {"8.0", {"fp8", "fp8_fast", "fp8_e5m2"}},
           {"9.0", {}},
           {"10.0", {"fp8_fast"}},
           {"", {}}}) {
    Topology topology = cluster({});
    topology.device_kind = "cuda";
    topology.nodes[0].gpus = {Gpu()};
    topology.nodes[0].gpus.edit()[0].compute = compute;
    topology.ranks[0].gpu = 0;
    const GemmSuite suite;
    const Config config = config_of(suite, Level::standard, {});
    std::set<std::string> left_out;
    for (const Case& c : suite.plan({config, topology, 40 * gib, 1}))
      if (!c.not_applicable.empty()) left_out.insert(c.parameters.at("dtype"));
    EXPECT_EQ(left_out, lacking) << compute;
  }
}

TEST(GemmPlan, ASoakSustainsForAFourthOfASegment) {
  const GemmSuite suite;
  const Config config = config_of(suite, Level::soak);  // of an hour: two segments
  int sustained = 0;
  for (const Case& c : suite.plan({config, cluster({}), gib, 1}))
    if (c.operation == "sustained") {
      EXPECT_DOUBLE_EQ(c.seconds, 450) << c.name;
      ++sustained;
    }
  EXPECT_GT(sustained, 0);
}

TEST(GemmRun, WrongArithmeticInRegistersIsAMiscompareAndNoSlowRate) {
  const GemmSuite suite;
  for (const char* name : {"fp64-peak-together", "fp64-n64-together"})
    for (const bool wrong : {false, true}) {
      Bench b(config_of(suite, Level::smoke));
      b.device.wrong_arithmetic = wrong;
      Case c;
      c.suite = "gemm", c.name = name, c.bytes = std::uint64_t{64} << 20, c.seconds = 0.05, c.turns = 1;
      c.parameters = {{"dtype", "fp64"}, {"mode", "together"}};
      if (c.name == "fp64-n64-together") c.parameters.update({{"n", 64}, {"cache_bytes", 1 << 16}});
      GemmSuite ran;
      b.run(ran, c);
      EXPECT_EQ(b.record.miscompares() > 0, wrong) << name;
      EXPECT_EQ(b.record.state_ == results::CaseState::fail, wrong) << name;
    }
}

}  // namespace
}  // namespace assay
