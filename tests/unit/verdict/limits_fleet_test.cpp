// SPDX-License-Identifier: Apache-2.0
// Limits of many parts: what several metrics say of them, and limits of a fleet of two models.
#include <gmock/gmock.h>

#include "tests/unit/fabricate.hpp"
#include "verdict/propose_limits.hpp"

namespace assay {
namespace {

using namespace fabricate;

TEST(VerdictLimitsOfFleets, WhatWarnsOfOneMetricDoesNotFailForAnother) {
  auto r = healthy(24);
  const auto devices = rows_of_kind(r, "device");
  auto& unsteady = add_case(r, "gemm", "fp64-n2048-together", "throughput", "FLOP/s", results::Better::higher,
                            "device", devices, std::vector<double>(24, 120e9));
  for (std::size_t e = 8; e < 24; ++e)
    for (std::size_t s = 0; s < 6; ++s)
      unsteady.metrics[0].values[e * 6 + s] = std::vector{80e9, 99e9, 120e9, 99e9, 85e9, 118e9}[s];
  auto& slow = first_case(r);
  for (std::size_t i = 0; i < 14 * slow.samples(); ++i) slow.metrics[0].values[i] *= 0.7;
  const auto v = judge(r, "[[limit]]\nmetric = \"gemm/*:throughput\"\nmin = \"99.5 GFLOP/s\"\n");
  EXPECT_EQ(state_of(r, v, "node13"), "FAIL");
  EXPECT_EQ(state_of(r, v, "node14"), "WARN");
  EXPECT_EQ(state_of(r, v, "node23"), "WARN");
}

/// The highest reading may be the median, too.
TEST(VerdictLimitsOfFleets, ACountBeyondItsMaximumIsAFactWhateverItsOtherReadings) {
  for (const double second : {4.0, 5.0}) {
    auto r = healthy(1);
    auto& c = add_case(r, "memory", "retries-together", "retries", "count", results::Better::lower, "device",
                       rows_of_kind(r, "device"), {5}, 4);
    c.metrics[0].values = {0, second, 5, 5};
    add_selftest(r, "memory");
    const auto v = judge(r, "[[limit]]\nmetric = \"memory/*:retries\"\nmax = \"3 count\"\n");
    ASSERT_EQ(count_severity(v, "FAIL"), 1U) << second;
    EXPECT_EQ(v.findings[0].confirmed_by, "exact") << second;
    EXPECT_EQ(*v.findings[0].value, 5);
  }
}

/// Links between all of eight nodes, of which the first four have another model. A link is as fast as its
/// ends together are.
results::Results two_models() {
  auto r = cluster(8);
  auto& inventory = r.inventory["node"];
  inventory.entity = rows_of_kind(r, "node");
  inventory.text["cpu_model"] = {"A", "A", "A", "A", "B", "B", "B", "B"};
  std::vector<std::int32_t> rows, source, destination;
  std::vector<double> rates;
  const auto devices = rows_of_kind(r, "device");
  for (std::size_t a = 0; a < 8; ++a)
    for (std::size_t b = 0; b < 8; ++b) {
      if (a == b) continue;
      source.push_back(devices[a]), destination.push_back(devices[b]);
      rates.push_back(a >= 4 && b >= 4 ? 25e9 : a >= 4 ? 12e9 : 10e9);
      const std::string name = r.entities[static_cast<std::size_t>(source.back())].name + ">" +
                               r.entities[static_cast<std::size_t>(destination.back())].name;
      rows.push_back(static_cast<std::int32_t>(r.entities.size()));
      r.entities.push_back({"link", "id-" + name, "path", name, 0, -1});
    }
  auto& c = add_case(r, "p2p", "bandwidth-uni-1048576", "bandwidth", "B/s", results::Better::higher, "link",
                     rows, rates, 12);
  c.source = source;
  c.destination = destination;
  add_selftest(r, "pair");
  return r;
}

TEST(VerdictLimitsOfFleets, ARunOfTwoModelsKeepsTheLimitsProposedFromIt) {
  const auto r = two_models();
  const auto proposed = verdict::propose_limits(r, "run.h5", "PASS");
  EXPECT_EQ(proposed.count, 2U) << proposed.text;
  for (const auto& f : judge(r, proposed.text).findings)
    EXPECT_NE(f.reference_kind, "limit") << f.text << proposed.text;
  // Nor is the variation between kinds of links that of single pairs: the limits stay near what is measured.
  EXPECT_THAT(proposed.text, testing::ContainsRegex("device = \"A\"\nmin = \"9[.][0-9]+ GB/s\""));
  EXPECT_THAT(proposed.text, testing::ContainsRegex("device = \"B\"\nmin = \"9[.][0-9]+ GB/s\""));
}

}  // namespace
}  // namespace assay
