// SPDX-License-Identifier: Apache-2.0
// How certain what a retest measured is: its samples may have two states, and its blocks may differ.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "baseline_rig.hpp"
#include "verdict/judgement.hpp"
#include "verdict/retest/candidates.hpp"
#include "verdict/retest/result.hpp"

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

/// What is in doubt at another clock was left out in the screening only, and the retest confirmed it.
TEST(VerdictRetestInterval, WhatTheClockMayExplainIsNoRemainderInTheRetest) {
  std::vector<verdict::SeriesRow> rows(9);
  verdict::Population p;
  p.slope = 1;
  p.delta = 0.03;
  verdict::RetestCase again;
  again.se = 0.0005;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].entity = static_cast<std::int32_t>(i);
    p.members.push_back({&rows[i], 0, 0, 0, false});
    again.members.push_back({rows[i].entity, 0, 0, 0, results::not_taken, 30});
  }
  // 4.5 % slow at equal clock.
  const auto deficit_at = [&](double clock, bool slope_known, double of_all = 1) {
    p.slope_known = slope_known;
    for (auto& m : again.members) m.clock = m.rate = std::log(of_all);
    again.members[0].clock = std::log(clock * of_all);
    again.members[0].rate = std::log(clock * of_all) - 0.045;
    const auto c = verdict::judge_retest(p, {again}, 0, true, {0}, 1);
    EXPECT_TRUE(c.measured);
    EXPECT_EQ(c.confirmed, c.deficit > 0.04) << clock;
    return c.deficit;
  };
  EXPECT_NEAR(deficit_at(0.94, true), 0.045, 1e-9);
  EXPECT_NEAR(deficit_at(0.88, true), 0.045 + 0.15 * std::log(0.88), 1e-9) << "far below the usual clock";
  EXPECT_NEAR(deficit_at(0.94, false), 0.045, 1e-9);
  EXPECT_NEAR(deficit_at(1.02, false), 0.045 - std::log(1.02), 1e-9) << "as measured it lacks so much";
  EXPECT_NEAR(deficit_at(1.06, false), 0, 1e-9) << "as measured it is faster";
  for (const bool slope_known : {true, false})
    EXPECT_NEAR(deficit_at(1, slope_known, 0.88), 0.045, 1e-9) << "all clocks are 12 % lower now";
  EXPECT_NEAR(deficit_at(1.02, false, 0.88), 0.045 - std::log(1.02), 1e-9);
}

/// Of 200 parts the first metric is refuted. Each has two more candidates and a metric that only warns.
TEST(VerdictRetestCandidates, OfMoreThanCanBeMeasuredEachPartHasItsNextOne) {
  constexpr std::size_t parts = 200, metrics = 4;
  auto r = cluster(400);
  const auto devices = rows_of_kind(r, "device");
  for (std::size_t k = 0; k < metrics; ++k)
    add_case(r, "memory", "pattern" + std::to_string(k), "bandwidth", "B/s", results::Better::higher,
             "device", devices, std::vector<double>(devices.size(), 1e11));
  auto again = first_case(r);
  again.name += ".c1";
  r.cases.push_back(again);
  const auto options = verdict::options_from(r);
  verdict::Judgement j(r, options);
  verdict::collect_series(j);
  verdict::Screening screening;
  for (std::size_t k = 0; k < metrics; ++k) {
    const auto s = std::ranges::find(j.series, "memory/pattern" + std::to_string(k) + ":bandwidth",
                                     &verdict::Series::full);
    ASSERT_NE(s, j.series.end());
    verdict::Population p;
    p.series = &*s;
    p.delta = p.delta_raw = 0.03;
    p.se = 0.0005;
    p.side_rate[0] = p.side_residual[0] = std::log(1e11);
    for (const auto& row : s->rows)
      p.members.push_back({&row, std::log(1e11), std::log(1e11), results::not_taken, false});
    screening.populations.push_back(std::move(p));
    for (std::size_t i = 0; i < parts; ++i) {
      verdict::Suspect suspect;
      suspect.population = k;
      suspect.member = i;
      suspect.deficit = 0.2 - 0.02 * static_cast<double>(k);
      suspect.delta = 0.03;
      suspect.warn = true;
      suspect.candidate = suspect.sure = k + 1 < metrics;
      screening.suspects.push_back(suspect);
    }
  }
  const auto found = verdict::candidates_of(j, screening);
  EXPECT_EQ(found.named.size(), parts);
  ASSERT_EQ(found.beside.size(), 256U);
  const auto in = [&](std::size_t k) {
    return std::ranges::count(found.beside, k, [](const auto* s) { return s->population; });
  };
  EXPECT_EQ(in(0), 0);
  EXPECT_EQ(in(1), 200) << "the next one of each";
  EXPECT_EQ(in(2), 56);
  EXPECT_EQ(in(3), 0) << "it only warns";
}

}  // namespace
}  // namespace assay
