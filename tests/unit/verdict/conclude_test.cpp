// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <chrono>
#include <cstdlib>

#include "fleet.hpp"
#include "results/json_io.hpp"
#include "tests/unit/fabricate.hpp"
#include "verdict/judgement.hpp"

namespace assay {
namespace {

using namespace fabricate;
using ::testing::HasSubstr;
using ::testing::Not;

const char* const impossible = "[[limit]]\nmetric = \"gemm/*:throughput\"\nmin = \"1 TFLOP/s\"\n";

void warn(results::Results& r) { r.counters.push_back({"gemm/x", row_named(r, "node1"), "edac_ce", 0, 1}); }
void open(results::Results& r) { plan_only(r, "gemm", "missing", true); }

TEST(VerdictConclude, Precedence) {
  auto r = healthy();
  EXPECT_EQ(judge(r).exit_code, 0);
  warn(r);
  EXPECT_EQ(judge(r).state, "WARN");
  EXPECT_EQ(judge(r).exit_code, 0);
  r.config["strict"] = true;
  EXPECT_EQ(judge(r).exit_code, 1);
  open(r);
  EXPECT_EQ(judge(r).state, "INCONCLUSIVE");
  EXPECT_EQ(judge(r).exit_code, 3);
  const auto v = judge(r, impossible);
  EXPECT_EQ(v.state, "FAIL");
  EXPECT_EQ(v.exit_code, 2);
  EXPECT_EQ(v.findings.front().severity, "FAIL");
}

TEST(VerdictConclude, InjectedRunIsNeverClean) {
  auto r = healthy();
  r.info.injected = true;
  EXPECT_EQ(judge(r).state, "INCONCLUSIVE");
  EXPECT_EQ(judge(r).exit_code, 3);
  EXPECT_THAT(all_reasons(judge(r)), HasSubstr("injected"));
  warn(r);
  EXPECT_EQ(judge(r).state, "INCONCLUSIVE");
  EXPECT_EQ(judge(r, impossible).state, "FAIL");
}

TEST(VerdictConclude, OnlyUnfiredInjectionsAreRead) {
  auto r = healthy();
  r.info.injected = true;
  r.events.push_back({0.0, row_named(r, "node1"), "inject", "crash:rank=1: rank 1, gemm/x: something"});
  const auto v = judge(r);
  EXPECT_TRUE(v.findings.empty());
  EXPECT_THAT(all_reasons(v), Not(HasSubstr("crash")));
  r.events.push_back(
      {0.0, row_named(r, "node1"), "inject-unfired", "injected fault without effect on rank 1: crash"});
  EXPECT_EQ(judge(r).state, "INCONCLUSIVE");
  EXPECT_THAT(all_reasons(judge(r)), HasSubstr("rank 1: crash"));
  EXPECT_EQ(judge(r, impossible).state, "FAIL");
}

TEST(VerdictConclude, AFileThatCouldNotBeReadIsAGap) {
  auto r = Fleet::of(8, 0.002).run();
  ASSERT_EQ(judge(r).state, "PASS");
  r.events.push_back({0, -1, "damaged", "a case was skipped: triad.c1.h5: cannot be read"});
  EXPECT_EQ(judge(r).state, "INCONCLUSIVE");
  EXPECT_THAT(all_reasons(judge(r)), HasSubstr("triad.c1.h5"));
}

TEST(VerdictConclude, EveryPartHasAState) {
  const auto r = healthy(2);
  const auto v = judge(r);
  for (const char* name : {"node0", "node1", "node0/cores0-1", "node1/cores0-1"})
    EXPECT_EQ(state_of(r, v, name), "PASS") << name;
  for (const char* name : {"node0/eth0", "node1/eth0", "node0/numa0"})
    EXPECT_EQ(state_of(r, v, name), "NOT_TESTED") << name;
  EXPECT_EQ(v.entities.size(), 8U);
}

TEST(VerdictConclude, NodeWithoutAnyDataIsNotTested) {
  auto r = healthy(2);
  r.entities.push_back({"node", "id-spare", "dmi", "spare", 0, -1});
  EXPECT_EQ(state_of(r, judge(r), "spare"), "NOT_TESTED");
}

TEST(VerdictConclude, BasisSaysWhenNothingWasCompared) {
  const auto v = judge(healthy(1));
  EXPECT_EQ(v.state, "PASS");
  EXPECT_EQ(v.basis, "limits 0, hardware rates 0, peers only 0, nothing 1 (checks and counters only)");
}

TEST(VerdictConclude, SameVerdictFromTheStoredFile) {
  auto r = healthy();
  warn(r);
  r.config["limits_text"] = impossible;
  r.config["limits"] = "contract.toml";
  const auto first = judge(r);
  EXPECT_EQ(first.state, "FAIL");
  r.verdict = first;
  const auto again = verdict::judge(r, verdict::options_from(r));
  EXPECT_EQ(results::dump(results::verdict_to_json(first)), results::dump(results::verdict_to_json(again)));
  // A file whose configuration says nothing is judged by what its verdict stored.
  r.config = Json::object();
  const auto from_inputs = verdict::judge(r, verdict::options_from(r));
  EXPECT_EQ(results::dump(results::verdict_to_json(first)),
            results::dump(results::verdict_to_json(from_inputs)));
}

TEST(VerdictConclude, InputsHoldDeltasConstantsAndLimits) {
  const auto v = judge(healthy(), "[[limit]]\nmetric = \"gemm/*:throughput\"\nmin = \"1 FLOP/s\"\n");
  EXPECT_TRUE(v.inputs.contains("delta"));
  EXPECT_EQ(v.inputs["constants"]["noise_limit"], 0.10);
  EXPECT_THAT(v.inputs["limits_text"].get<std::string>(), HasSubstr("1 FLOP/s"));
}

TEST(VerdictConclude, ForeignRowsDoNotCrash) {
  auto r = healthy();
  r.entities[1].parent = 1;  // its own parent
  r.errors.push_back({"x", 4711, 0, 0, 1, 1, 0});
  r.counters.push_back({"x", -5, "edac_ue", 0, 1});
  first_case(r).entity[0] = 99999;
  EXPECT_EQ(judge(r).state, "FAIL");
}

// 16,000 devices with 30 metrics: far less than the 30 s that 100,000 devices may take.
TEST(VerdictConclude, LargeClusterIsJudgedInTime) {
  const char* heavy = std::getenv("ASSAY_HEAVY_TESTS");
  const int nodes = heavy != nullptr ? 2000 : 100;
  auto r = cluster(nodes, 8);
  const auto devices = rows_of_kind(r, "device");
  std::vector<double> values;
  for (std::size_t i = 0; i < devices.size(); ++i) values.push_back(1e11 * wobble(i, 0.01));
  for (int m = 0; m < 30; ++m) {
    add_case(r, "gemm", "fp32-n" + std::to_string(m), "throughput", "FLOP/s", results::Better::higher,
             "device", devices, values, 5);
  }
  add_selftest(r, "gemm");
  const auto begin = std::chrono::steady_clock::now();
  const auto v = judge(r);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  RecordProperty("seconds", std::to_string(seconds));
  std::printf("judged %zu series in %.3f s\n", devices.size() * 30, seconds);
  EXPECT_EQ(v.state, "PASS");
  EXPECT_LT(seconds, 20.0);
}

TEST(VerdictConclude, APercentageThatRoundsToNothingHasNoSign) {
  EXPECT_EQ(verdict::percent(-4e-4), "0.0 %");
  EXPECT_EQ(verdict::percent(-6e-4), "-0.1 %");
  EXPECT_EQ(verdict::percent(-0.104), "-10.4 %");
}

}  // namespace
}  // namespace assay
