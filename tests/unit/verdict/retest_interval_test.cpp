// SPDX-License-Identifier: Apache-2.0
// How certain what a retest measured is: its samples may have two states, and its blocks may differ.
#include <gmock/gmock.h>

#include <utility>
#include <vector>

#include "baseline_rig.hpp"

namespace assay {
namespace {

using namespace fabricate;
using results::Results;

/// One node at 90 GFLOP/s whose retest took these samples (GFLOP/s), in blocks of so many.
Results measured_as(const std::vector<double>& again, std::size_t block = 30) {
  auto r = cluster(1);
  r.info.run_id = "now";
  auto c = add_case(r, "gemm", "fp32-n2048-together", "throughput", "FLOP/s", results::Better::higher,
                    "device", rows_of_kind(r, "device"), {90e9}, static_cast<int>(again.size()));
  first_case(r).t.assign(again.size(), 0.0);
  c.name += ".c1";
  for (std::size_t s = 0; s < again.size(); ++s) {
    c.metrics[0].values[s] = 1e9 * again[s];
    c.block[s] = static_cast<std::int32_t>(s / block);
  }
  r.cases.push_back(c);
  add_selftest(r, "gemm");
  return r;
}

/// So many of each value in turn.
std::vector<double> in_turn(const std::vector<std::pair<std::size_t, double>>& counts) {
  std::vector<double> all;
  for (const auto& [n, value] : counts) all.insert(all.end(), n, value);
  return all;
}

std::size_t faults_by_limit(const Results& r) {
  return count_severity(judge(r, "[[limit]]\nmetric = \"gemm/*:throughput\"\nmin = \"100 GFLOP/s\"\n"),
                        "FAIL");
}

TEST(VerdictRetestInterval, SamplesOfTwoStatesConfirmNoDeficitOfOneOfThem) {
  EXPECT_EQ(faults_by_limit(measured_as(in_turn({{16, 99}, {14, 110}}))), 0U);
  EXPECT_EQ(faults_by_limit(measured_as(in_turn({{28, 99}, {2, 110}}))), 1U);
  EXPECT_EQ(faults_by_limit(measured_as(in_turn({{30, 99}}))), 1U);
  const auto faults = [](const std::vector<double>& again) {
    return count_severity(baseline_rig::judged(measured_as(again), baseline_rig::baseline(healthy(32))),
                          "FAIL");
  };
  EXPECT_EQ(faults(in_turn({{16, 92}, {14, 101}})), 0U);
  EXPECT_EQ(faults(in_turn({{30, 92}})), 1U);
}

TEST(VerdictRetestInterval, BlocksThatDifferWidenIt) {
  const auto again = in_turn({{10, 97}, {10, 98.5}, {10, 104}});
  EXPECT_EQ(faults_by_limit(measured_as(again, 30)), 1U) << "one block";
  EXPECT_EQ(faults_by_limit(measured_as(again, 10)), 0U);
}

}  // namespace
}  // namespace assay
