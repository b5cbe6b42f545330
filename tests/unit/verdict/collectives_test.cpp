// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>

#include "base/random.hpp"
#include "tests/unit/fabricate.hpp"
#include "verdict/collectives.hpp"

namespace assay {
namespace {

using namespace fabricate;
using ::testing::HasSubstr;

constexpr auto groups_name = "allreduce-groups-1048576-mpi";

/// All-reduce over random groups of 4 nodes with two ranks each; a group is as fast as its slowest node.
void measure_groups(results::Results& r, const std::string& name, const std::map<int, double>& slow,
                    int nodes, int draws, std::uint64_t seed, double noise = 0.01) {
  const RandomStream random = RandomStream(seed, "groups").child(name);
  const auto devices = rows_of_kind(r, "device");
  std::vector<double> rates(devices.size(), 1e9);
  auto& c = add_case(r, "allreduce", name, "busbw", "B/s", results::Better::higher, "device", devices, rates,
                     5 * draws);
  c.stage = "groups";
  c.case_key = "groups-key";
  results::Metric group{"group", "count", results::Better::none, false, results::Role::covariate, true, {}};
  group.values.resize(c.metrics[0].values.size());
  for (int d = 0; d < draws; ++d) {
    const auto order = random.child(std::to_string(d)).permutation(static_cast<std::size_t>(nodes));
    std::vector<int> of(static_cast<std::size_t>(nodes));
    for (std::size_t i = 0; i < order.size(); ++i) of[order[i]] = static_cast<int>(i / 4);
    for (std::size_t e = 0; e < devices.size(); ++e) {
      const int g = of[e / 2];
      double factor = 1;
      for (const auto& [node, share] : slow)
        if (of[static_cast<std::size_t>(node)] == g) factor = std::min(factor, 1 - share);
      for (int s = 0; s < 5; ++s) {
        const auto at = e * static_cast<std::size_t>(5 * draws) + static_cast<std::size_t>(5 * d + s);
        const double u = random.uniform(static_cast<std::uint64_t>(1000 * d + 10 * g + s)) - 0.5;
        c.metrics[0].values[at] = 1e9 * factor * std::exp(2 * noise * u);
        group.values[at] = 1e6 * d + g;
      }
    }
  }
  c.metrics.push_back(group);
}

results::Results run(const std::map<int, double>& slow, int nodes = 32, int draws = 4,
                     std::uint64_t seed = 1) {
  auto r = cluster(nodes, 2);
  measure_groups(r, groups_name, slow, nodes, draws, seed);
  add_selftest(r, "allreduce");
  return r;
}

std::vector<std::string> accused_groups(const results::VerdictData& v) {
  std::vector<std::string> names;
  for (const auto& f : v.findings)
    if (f.severity != "INFO") names.push_back(f.level + " " + f.name);
  return names;
}

TEST(VerdictCollectives, NodeThatSlowsAllItsGroupsIsNamed) {
  auto r = run({{17, 0.4}});
  const auto v = judge(r);
  ASSERT_EQ(accused_groups(v), std::vector<std::string>{"node node17"});
  EXPECT_EQ(v.findings[0].severity, "WARN");
  EXPECT_NEAR(*v.findings[0].deficit, 0.4, 0.03);
  EXPECT_EQ(state_of(r, v, "node17"), "WARN");
}

TEST(VerdictCollectives, FewNodesNeedThirtyPercent) {
  int named = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto names = accused_groups(judge(run({{3, 0.5}}, 12, 4, seed)));
    named += names == std::vector<std::string>{"node node3"} ? 1 : 0;
    // Whoever was with it in all four draws cannot be told from it.
    EXPECT_TRUE(names.empty() || names.size() == 1) << seed;
    EXPECT_TRUE(accused_groups(judge(run({{3, 0.2}}, 12, 4, seed))).empty()) << seed;
  }
  EXPECT_GE(named, 16);
}

TEST(VerdictCollectives, HealthyGroupsAccuseNobody) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed)
    for (const int nodes : {8, 16, 32, 64})
      EXPECT_TRUE(accused_groups(judge(run({}, nodes, 4, seed))).empty()) << nodes << " " << seed;
}

TEST(VerdictCollectives, TooFewDrawsNameNobody) {
  EXPECT_TRUE(accused_groups(judge(run({{17, 0.4}}, 32, 2))).empty());
}

TEST(VerdictCollectives, NewGroupsConfirmOrClear) {
  for (const bool still : {true, false}) {
    auto r = run({{17, 0.4}});
    const auto options = verdict::options_from(r);
    {
      verdict::Judgement j(r, options);
      verdict::collect_series(j);
      const auto asked = verdict::collective_retests(j);
      ASSERT_EQ(asked.size(), 1U);
      EXPECT_EQ(asked[0].name, groups_name);
      EXPECT_THAT(asked[0].candidates,
                  testing::ElementsAre(row_named(r, "node17/cores0-1"), row_named(r, "node17/cores2-3")));
      EXPECT_EQ(asked[0].controls.size(), 62U);
    }
    measure_groups(r, std::string(groups_name) + ".c1",
                   still ? std::map<int, double>{{17, 0.4}} : std::map<int, double>{}, 32, 4, 9);
    r.plan.pop_back();
    verdict::Judgement j(r, options);
    verdict::collect_series(j);
    EXPECT_TRUE(verdict::collective_retests(j).empty());
    const auto v = judge(r);
    EXPECT_EQ(accused_groups(v).size(), still ? 1U : 0U);
    ASSERT_NE(find_kind(v, "slow"), nullptr);
    EXPECT_EQ(find_kind(v, "slow")->confirmed, still);
    EXPECT_THAT(find_kind(v, "slow")->text,
                HasSubstr(still ? "confirmed by new groups" : "not slow in new groups"));
  }
}

/// Operations of all ranks together: sample s of one beside sample s of the others. `factor`: how much longer
/// a rank takes.
void measure_in_step(results::Results& r, const std::string& suite, const std::string& name,
                     const std::string& metric, int samples, const std::map<std::size_t, double>& factor,
                     std::uint64_t seed) {
  const auto devices = rows_of_kind(r, "device");
  const RandomStream random = RandomStream(seed, name);
  auto& c = add_case(r, suite, name, metric, "s", results::Better::lower, "device", devices,
                     std::vector<double>(devices.size(), 1e-3), samples);
  c.stage = suite == "train" ? "train" : "world";
  for (int s = 0; s < samples; ++s) {
    // What disturbs the machine disturbs all, by up to ten times, and each by 30 % besides.
    const double all = std::exp(2.3 * random.uniform(static_cast<std::uint64_t>(s)));
    for (std::size_t e = 0; e < devices.size(); ++e) {
      const double own = 1 + 0.3 * random.uniform(1000 * (e + 1) + static_cast<std::uint64_t>(s));
      const auto at = factor.find(e);
      c.metrics[0].values[e * static_cast<std::size_t>(samples) + static_cast<std::size_t>(s)] =
          1e-3 * all * own * (at == factor.end() ? 1 : at->second);
    }
  }
  if (suite == "train") c.metrics[0].role = results::Role::covariate;
}

TEST(VerdictInStep, SlowRankIsNamedAndConfirmed) {
  for (const auto& [suite, name, metric] : {std::tuple("allreduce", "allreduce-world-8-mpi", "duration"),
                                            std::tuple("train", "tiny-together", "compute")}) {
    auto r = cluster(1, 4);
    add_selftest(r, suite);
    measure_in_step(r, suite, name, metric, 9, {{1, 4.0}}, 1);
    const auto warned = judge(r);
    ASSERT_EQ(accused_groups(warned), std::vector<std::string>{"device node0/cores2-3"}) << suite;
    EXPECT_EQ(warned.findings[0].severity, "WARN");
    const auto asked = verdict::retests(r, verdict::options_from(r));
    ASSERT_EQ(asked.size(), 1U) << suite;
    EXPECT_EQ(asked[0].name, name);
    EXPECT_EQ(asked[0].candidates, std::vector{row_named(r, "node0/cores2-3")});
    for (const bool still : {true, false}) {
      auto again = r;
      measure_in_step(again, suite, std::string(name) + ".c1", metric, 9,
                      still ? std::map<std::size_t, double>{{1, 4.0}} : std::map<std::size_t, double>{}, 2);
      again.plan.pop_back();
      EXPECT_TRUE(verdict::retests(again, verdict::options_from(again)).empty());
      const auto v = judge(again);
      ASSERT_EQ(count_severity(v, "FAIL"), still ? 1U : 0U) << suite;
      if (!still) continue;
      EXPECT_EQ(v.findings[0].name, "node0/cores2-3");
      EXPECT_NEAR(*v.findings[0].deficit, 0.75, 0.06);
      EXPECT_THAT(v.findings[0].text, HasSubstr("9 of 9"));
    }
  }
}

TEST(VerdictInStep, CommonOrRandomSlownessNamesNoRank) {
  auto r = cluster(1, 4);
  add_selftest(r, "allreduce");
  measure_in_step(r, "allreduce", "allreduce-world-8-mpi", "duration", 9, {}, 1);
  EXPECT_TRUE(accused_groups(judge(r)).empty());
  auto two = cluster(1, 4);
  add_selftest(two, "allreduce");
  measure_in_step(two, "allreduce", "allreduce-world-8-mpi", "duration", 9, {{1, 4.0}, {2, 4.0}}, 1);
  EXPECT_TRUE(accused_groups(judge(two)).empty());
  // Who comes late makes the others wait: their times are long, its own is short.
  auto late = cluster(1, 4);
  add_selftest(late, "allreduce");
  measure_in_step(late, "allreduce", "allreduce-world-8-mpi", "duration", 9, {{0, 4.0}, {2, 4.0}, {3, 4.0}},
                  1);
  EXPECT_TRUE(accused_groups(judge(late)).empty());
  auto three = cluster(1, 3);
  add_selftest(three, "allreduce");
  measure_in_step(three, "allreduce", "allreduce-world-8-mpi", "duration", 9, {{1, 4.0}}, 1);
  EXPECT_TRUE(accused_groups(judge(three)).empty());
}

TEST(VerdictInStep, RepeatedLateArrivalsAreIntermittent) {
  for (const int stalls : {0, 3, 12}) {
    auto r = cluster(1, 4);
    add_selftest(r, "allreduce");
    measure_in_step(r, "allreduce", "allreduce-world-8-mpi-isolated", "duration", 100, {}, 1);
    auto& c = r.cases.back();
    results::Metric skew{"arrival_skew", "s", results::Better::lower, true, results::Role::covariate,
                         true,           {}};
    const RandomStream random(3, "skew");
    for (std::size_t e = 0; e < 4; ++e)
      for (std::size_t s = 0; s < 100; ++s) {
        const bool stalled = e == 2 && s % 8 == 0 && s / 8 < static_cast<std::size_t>(stalls);
        skew.values.push_back(stalled ? 0.5 : 1e-6 * random.uniform(100 * e + s));
      }
    c.metrics.push_back(skew);
    const auto v = judge(r);
    if (stalls < 5) {
      EXPECT_TRUE(accused_groups(v).empty()) << stalls;
      continue;
    }
    ASSERT_EQ(accused_groups(v), std::vector<std::string>{"device node0/cores4-5"});
    EXPECT_EQ(v.findings[0].kind, "intermittent");
    EXPECT_THAT(v.findings[0].text, HasSubstr("came late 12 times in 100 operations"));
  }
}

}  // namespace
}  // namespace assay
