// SPDX-License-Identifier: Apache-2.0
// Who gets slower while his peers do not: simulated within a case and over the segments of a soak.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "simulate/machine.hpp"
#include "simulate/simulate.hpp"
#include "verdict/drift.hpp"
#include "verdict/join.hpp"

namespace assay::simulate {
namespace {

std::vector<results::Finding> drifts(const results::VerdictData& verdict) {
  std::vector<results::Finding> found;
  for (const auto& f : verdict.findings)
    if (f.kind == "drift") found.push_back(f);
  return found;
}

TEST(Drift, TheBeginOfAFallIsWhereTheLineBends) {
  std::vector<double> line(16, 0.0);
  for (std::size_t i = 10; i < line.size(); ++i) line[i] = -0.01 * static_cast<double>(i - 9);
  const verdict::Fall fall = verdict::fall_of(line);
  EXPECT_EQ(fall.begin, 9U);
  EXPECT_NEAR(fall.change, -0.06, 1e-9);
}

TEST(Drift, AStepIsToldWithItsSizeAndItsFirstLowPosition) {
  for (const std::size_t at : {3U, 8U, 13U}) {
    std::vector<double> line(16, 0.0);
    for (std::size_t i = at; i < line.size(); ++i) line[i] = std::log(0.7);
    const verdict::Fall fall = verdict::fall_of(line);
    EXPECT_EQ(fall.begin, at);
    EXPECT_NEAR(std::exp(fall.change), 0.7, 1e-9);
  }
}

/// The best slope of a dip that ends in part rises: "lost -2.1 %".
TEST(Drift, ADipThatEndsInPartIsALoss) {
  const std::vector<double> line = {0, -0.05, -0.05, -0.018};
  EXPECT_LT(verdict::fall_of(line).change, -0.018);
  std::vector<std::vector<double>> lines(16, std::vector<double>(4, 0.0));
  for (std::size_t m = 0; m < lines.size(); ++m) lines[m][m % 4] += 0.001 * static_cast<double>(m % 3);
  lines[5] = line;
  for (const auto& d : verdict::drifters_of(lines, 0.01)) EXPECT_LT(d.change, 0);
}

TEST(Drift, CommonLossIsNoDrift) {
  std::mt19937_64 g(3);
  std::normal_distribution<double> noise(0, 0.002);
  std::size_t alarms = 0;
  for (int run = 0; run < 400; ++run) {
    std::vector<std::vector<double>> lines(12, std::vector<double>(8));
    for (auto& line : lines)
      for (std::size_t s = 0; s < line.size(); ++s) line[s] = -0.02 * static_cast<double>(s) + noise(g);
    alarms += verdict::drifters_of(lines, 0.01).empty() ? 0 : 1;
    for (std::size_t s = 0; s < 8; ++s) lines[5][s] -= 0.01 * static_cast<double>(s);
    const auto named = verdict::drifters_of(lines, 0.01);
    ASSERT_EQ(named.size(), 1U) << run;
    EXPECT_EQ(named[0].member, 5U);
    EXPECT_NEAR(named[0].change, -0.07, 0.01);
  }
  EXPECT_LE(alarms, 4U);
}

std::vector<std::vector<double>> falling(std::size_t members, double per_step, double noise,
                                         std::mt19937_64& g) {
  std::normal_distribution<double> around(0, noise);
  std::vector<std::vector<double>> lines(members, std::vector<double>(8));
  for (std::size_t m = 0; m < members; ++m)
    for (std::size_t s = 0; s < 8; ++s)
      lines[m][s] = 0.3 * static_cast<double>(m) + per_step * static_cast<double>(s) + around(g);
  return lines;
}

TEST(Drift, WhatAllLoseTogetherIsACommonFall) {
  std::mt19937_64 g(4);
  for (const std::size_t members : {1U, 2U, 12U})
    for (int run = 0; run < 200; ++run) {
      EXPECT_FALSE(verdict::common_fall_of(falling(members, 0, 0.02, g), 0.05)) << members;
      EXPECT_FALSE(verdict::common_fall_of(falling(members, -0.005, 0.002, g), 0.05)) << members;
      const auto fall = verdict::common_fall_of(falling(members, -0.02, 0.002, g), 0.05);
      ASSERT_TRUE(fall) << members;
      EXPECT_NEAR(fall->change, -0.14, 0.03) << members;
      // Half of them lose nothing: these are two groups, not all.
      auto half = falling(12, -0.02, 0.002, g);
      const auto level = falling(6, 0, 0.002, g);
      std::copy(level.begin(), level.end(), half.begin());
      EXPECT_FALSE(verdict::common_fall_of(half, 0.05));
    }
}

TEST(Drift, ALostMemberHidesNoCommonFall) {
  std::mt19937_64 g(5);
  auto lines = falling(8, -0.02, 0.002, g);
  for (std::size_t s = 5; s < lines[3].size(); ++s) lines[3][s] = std::nan("");
  EXPECT_TRUE(verdict::common_fall_of(lines, 0.05));
}

TEST(Drift, WhatNoMemberShowsIsNoCommonFall) {
  std::mt19937_64 g(6);
  auto early = falling(4, -0.03, 0.002, g), late = falling(4, 0, 0.002, g);
  for (std::size_t m = 0; m < 4; ++m)
    for (std::size_t s = 0; s < 8; ++s) {
      (s < 4 ? late : early)[m][s] = std::nan("");
      if (s >= 4) late[m][s] -= 0.2;  // on other nodes, whose level differs
    }
  early.insert(early.end(), late.begin(), late.end());
  EXPECT_FALSE(verdict::common_fall_of(early, 0.05));
}

Spec long_case() {
  Spec spec;
  spec.nodes = 16;
  spec.metrics = pick_metrics({"memory/triad-together"});
  spec.samples = 1000;  // 100 s
  spec.seed = 5;
  return spec;
}

TEST(Drift, WithinALongCaseThePartIsNamedWithItsBegin) {
  auto spec = long_case();
  spec.started = "2026-01-31T02:00:00Z";
  EXPECT_TRUE(drifts(*run(spec).verdict).empty());
  for (const int percent : {3, 5}) {
    spec.faults = {parse_fault(fmt::format("drift:node=3,percent={}", percent))};
    const auto found = drifts(*run(spec).verdict);
    ASSERT_EQ(found.size(), 1U) << percent;
    EXPECT_EQ(found[0].name, Machine(spec).node_name(3) + "/gpu0");
    EXPECT_EQ(found[0].severity, "WARN");
    EXPECT_NEAR(*found[0].deficit, 0.01 * percent, 0.006);
    EXPECT_TRUE(found[0].since.starts_with("2026-01-31T02:00:")) << found[0].since;
  }
}

TEST(Drift, AFleetThatLosesItsRateWithinACaseIsNamedAsOne) {
  for (const int nodes : {1, 8}) {
    auto spec = long_case();
    spec.nodes = static_cast<std::size_t>(nodes);
    spec.faults = {parse_fault("drift:percent=40")};
    const auto found = drifts(*run(spec).verdict);
    ASSERT_EQ(found.size(), 1U) << nodes;
    EXPECT_EQ(found[0].level, "cluster");
    EXPECT_EQ(found[0].severity, "WARN");
    EXPECT_NEAR(*found[0].deficit, 0.4, 0.05);
    spec.faults = {parse_fault("drift:percent=10")};  // as a cold machine may do
    EXPECT_TRUE(drifts(*run(spec).verdict).empty()) << nodes;
  }
}

/// Parts with fewer samples than others have no times for the rest. Cases of a second were judged, and a loss
/// was told "in nan min".
TEST(Drift, TheTimesOfSamplesThatWereNotTakenDoNotCount) {
  auto spec = long_case();
  spec.faults = {parse_fault("drift:percent=40")};
  for (const double faster : {1.0, 100.0}) {
    auto r = screen(spec);
    for (auto& c : r.cases) {
      for (std::size_t s = 0; s < c.t.size(); ++s) c.t[s] /= faster;
      for (std::size_t s = c.t.size() - 10; s < c.t.size(); ++s) c.t[s] = results::not_taken;
      c.count.back() -= 10;
    }
    const auto found = drifts(verdict::judge(r, {}));
    ASSERT_EQ(found.size(), faster == 1 ? 1U : 0U);
    for (const auto& f : found) EXPECT_EQ(f.text.find("nan"), std::string::npos) << f.text;
  }
}

/// The rate of such a sample stood beside rates over clocks: "lost 100.0 %".
TEST(Drift, SamplesWithoutAClockDoNotCount) {
  for (const std::size_t parts : {1U, 16U}) {
    auto spec = long_case();
    spec.metrics = pick_metrics({"gemm/fp32-n4096-together"});
    spec.clock_cv = 0.005;
    auto r = screen(spec);
    auto& c = r.cases.front();
    auto clock = std::ranges::find(c.metrics, "clock", &results::Metric::name);
    ASSERT_NE(clock, c.metrics.end());
    for (std::size_t e = 0; e < parts; ++e)
      for (std::size_t s = 0; s < c.samples() / 4; ++s) clock->values[e * c.samples() + s] = 0;
    EXPECT_TRUE(drifts(verdict::judge(r, {})).empty()) << parts;
  }
}

/// Eight segments, one of 8 nodes loses `percent` more in each from segment `first` on.
void over_segments(int minutes, double percent, std::uint64_t first) {
  verdict::Join join;
  Spec spec;
  spec.nodes = 8;
  spec.metrics = pick_metrics({"memory/triad-together", "gemm/fp32-n4096-together"});
  spec.seed = 6;
  const auto started = [&](std::uint64_t run) {
    const std::uint64_t at = run * static_cast<std::uint64_t>(minutes);
    return fmt::format("2026-01-31T{:02}:{:02}:00Z", at / 60, at % 60);
  };
  for (spec.run = 0; spec.run < 8; ++spec.run) {
    spec.started = started(spec.run);
    spec.faults.clear();
    if (percent > 0 && spec.run > first)
      spec.faults = {parse_fault(
          fmt::format("slow:node=3,percent={}", percent * static_cast<double>(spec.run - first)))};
    const auto r = screen(spec);
    join.add(fmt::format("seg{:02}.h5", spec.run), r, verdict::judge(r, {}));
  }
  const auto v = join.verdict(false);
  const auto found = drifts(v);
  ASSERT_EQ(found.size(), percent > 0 ? 1U : 0U);
  if (percent == 0) return;
  EXPECT_EQ(found[0].name, Machine(spec).node_name(3) + "/gpu0");
  EXPECT_EQ(found[0].since, started(first));
  EXPECT_NEAR(*found[0].deficit, 0.01 * percent * static_cast<double>(7 - first), 0.007);
  const auto state = std::find_if(v.entities.begin(), v.entities.end(), [&](const auto& s) {
    return join.results().entities[static_cast<std::size_t>(s.entity)].name == found[0].name;
  });
  ASSERT_NE(state, v.entities.end());
  EXPECT_NE(state->state, "PASS");
}

TEST(Drift, AFleetThatLosesItsRateFromSegmentToSegmentIsNamedAsOne) {
  verdict::Join join;
  Spec spec;
  spec.nodes = 8;
  spec.metrics = pick_metrics({"memory/triad-together", "gemm/fp32-n4096-together"});
  for (spec.run = 0; spec.run < 8; ++spec.run) {
    spec.started = fmt::format("2026-01-31T{:02}:00:00Z", spec.run);
    if (spec.run > 0) spec.faults = {parse_fault(fmt::format("slow:case=gemm/*,percent={}", 4 * spec.run))};
    const auto r = screen(spec);
    join.add(fmt::format("seg{:02}.h5", spec.run), r, verdict::judge(r, {}));
  }
  const auto found = drifts(join.verdict(false));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].level, "cluster");
  EXPECT_EQ(found[0].suite, "gemm");
  EXPECT_NEAR(*found[0].deficit, 0.28, 0.03);
  EXPECT_EQ(found[0].since, "2026-01-31T00:00:00Z");
}

TEST(Drift, HealthySegmentsNameNobody) { over_segments(60, 0, 0); }
TEST(Drift, OnePercentAnHourFromTheThirdHourOnIsNamedWithItsBegin) { over_segments(60, 1, 2); }
TEST(Drift, OnePercentAnHourOverEightHalfHoursIsNamedWithItsBegin) { over_segments(30, 0.5, 0); }

}  // namespace
}  // namespace assay::simulate
