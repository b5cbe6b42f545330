// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>

#include "base/random.hpp"
#include "fabricate.hpp"
#include "verdict/collectives.hpp"

namespace assay {
namespace {

using namespace fabricate;
using ::testing::HasSubstr;

constexpr auto groups_name = "allreduce-groups-1048576-mpi";

/// All-reduce over random groups of 4 nodes with two ranks each; a group is as fast as its slowest node.
void measure_groups(results::Results& r, const std::string& name, const std::map<int, double>& slow, int nodes, int draws,
                    std::uint64_t seed, double noise = 0.01) {
  const RandomStream random = RandomStream(seed, "groups").child(name);
  const auto devices = rows_of_kind(r, "device");
  std::vector<double> rates(devices.size(), 1e9);
  auto& c = add_case(r, "allreduce", name, "busbw", "B/s", results::Better::higher, "device", devices, rates, 5 * draws);
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

results::Results run(const std::map<int, double>& slow, int nodes = 32, int draws = 4, std::uint64_t seed = 1) {
  auto r = cluster(nodes, 2);
  measure_groups(r, groups_name, slow, nodes, draws, seed);
  add_selftest(r, "allreduce");
  return r;
}

std::vector<std::string> accused(const results::VerdictData& v) {
  std::vector<std::string> names;
  for (const auto& f : v.findings)
    if (f.severity != "INFO") names.push_back(f.level + " " + f.name);
  return names;
}

TEST(VerdictCollectives, NodeThatSlowsAllItsGroupsIsNamed) {
  auto r = run({{17, 0.4}});
  const auto v = judge(r);
  ASSERT_EQ(accused(v), std::vector<std::string>{"node node17"});
  EXPECT_EQ(v.findings[0].severity, "WARN");
  EXPECT_NEAR(*v.findings[0].deficit, 0.4, 0.03);
  EXPECT_EQ(state_of(r, v, "node17"), "WARN");
}

TEST(VerdictCollectives, FewNodesNeedThirtyPercent) {
  int named = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto names = accused(judge(run({{3, 0.5}}, 12, 4, seed)));
    named += names == std::vector<std::string>{"node node3"} ? 1 : 0;
    // Whoever was with it in all four draws cannot be told from it.
    EXPECT_TRUE(names.empty() || names.size() == 1) << seed;
    EXPECT_TRUE(accused(judge(run({{3, 0.2}}, 12, 4, seed))).empty()) << seed;
  }
  EXPECT_GE(named, 16);
}

TEST(VerdictCollectives, HealthyGroupsAccuseNobody) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed)
    for (const int nodes : {8, 16, 32, 64}) EXPECT_TRUE(accused(judge(run({}, nodes, 4, seed))).empty()) << nodes << " " << seed;
}

TEST(VerdictCollectives, TooFewDrawsNameNobody) { EXPECT_TRUE(accused(judge(run({{17, 0.4}}, 32, 2))).empty()); }

TEST(VerdictCollectives, NewGroupsConfirmOrClear) {
  for (const bool still : {true, false}) {
    auto r = run({{17, 0.4}});
    const auto options = verdict::options_from(r);
    {
      verdict::Judgement j(r, options);
      verdict::collect_series(j);
      const auto asked = verdict::collective_rechecks(j);
      ASSERT_EQ(asked.size(), 1U);
      EXPECT_EQ(asked[0].name, groups_name);
      EXPECT_THAT(asked[0].candidates,
                  testing::ElementsAre(row_named(r, "node17/cores0-1"), row_named(r, "node17/cores2-3")));
      EXPECT_EQ(asked[0].controls.size(), 62U);
    }
    measure_groups(r, std::string(groups_name) + ".c1", still ? std::map<int, double>{{17, 0.4}} : std::map<int, double>{},
                   32, 4, 9);
    r.plan.pop_back();
    verdict::Judgement j(r, options);
    verdict::collect_series(j);
    EXPECT_TRUE(verdict::collective_rechecks(j).empty());
    const auto v = judge(r);
    EXPECT_EQ(accused(v).size(), still ? 1U : 0U);
    ASSERT_NE(find_kind(v, "slow"), nullptr);
    EXPECT_EQ(find_kind(v, "slow")->confirmed, still);
    EXPECT_THAT(find_kind(v, "slow")->text, HasSubstr(still ? "confirmed by new groups" : "not slow in new groups"));
  }
}

}  // namespace
}  // namespace assay
