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
  EXPECT_EQ(verdict::begin_of_fall(line), 9U);
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
    EXPECT_NEAR(named[0].change, -0.06, 0.01);
  }
  EXPECT_LE(alarms, 4U);
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
  spec.faults = {parse_fault("drift:node=3,percent=5")};
  const auto found = drifts(*run(spec).verdict);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].name, Machine(spec).node_name(3) + "/gpu0");
  EXPECT_EQ(found[0].severity, "WARN");
  EXPECT_NEAR(*found[0].deficit, 0.0375, 0.005);  // between the middles of the first and of the last quarter
  EXPECT_TRUE(found[0].since.starts_with("2026-01-31T02:00:")) << found[0].since;
}

TEST(Drift, OverTheSegmentsOfASoakThePartIsNamedWithItsBegin) {
  for (const bool faulty : {false, true}) {
    verdict::Join join;
    Spec spec;
    spec.nodes = 8;
    spec.metrics = pick_metrics({"memory/triad-together", "gemm/fp32-n4096-together"});
    spec.seed = 6;
    for (spec.run = 0; spec.run < 8; ++spec.run) {
      spec.started = fmt::format("2026-01-31T{:02}:00:00Z", spec.run);
      // 1 % an hour from the third hour on.
      spec.faults.clear();
      if (faulty && spec.run > 2)
        spec.faults = {parse_fault(fmt::format("slow:node=3,percent={}", spec.run - 2))};
      const auto r = screen(spec);
      join.add(fmt::format("seg{:02}.h5", spec.run), r, verdict::judge(r, {}));
    }
    const auto v = join.verdict(false);
    const auto found = drifts(v);
    ASSERT_EQ(found.size(), faulty ? 1U : 0U);
    if (!faulty) continue;
    EXPECT_EQ(found[0].name, Machine(spec).node_name(3) + "/gpu0");
    EXPECT_EQ(found[0].since, "2026-01-31T02:00:00Z");
    EXPECT_NEAR(*found[0].deficit, 0.045, 0.006);
    const auto state = std::find_if(v.entities.begin(), v.entities.end(), [&](const auto& s) {
      return join.results().entities[static_cast<std::size_t>(s.entity)].name == found[0].name;
    });
    ASSERT_NE(state, v.entities.end());
    EXPECT_NE(state->state, "PASS");
  }
}

}  // namespace
}  // namespace assay::simulate
