// SPDX-License-Identifier: Apache-2.0
// Collectives over random groups of each rail by itself: which device of a node it is, or which rail.
#include <gmock/gmock.h>

#include <cmath>
#include <map>

#include "base/random.hpp"
#include "tests/unit/fabricate.hpp"
#include "verdict/collectives.hpp"

namespace assay {
namespace {

using namespace fabricate;
using ::testing::HasSubstr;

constexpr auto rails_name = "allreduce-rails-16777216-mpi";

struct Slow {
  int node, rail;  ///< -1: all
  double share;
};

/// All-reduce over random groups of 4 nodes, each of `rails` local ranks by itself; a group is as fast as its
/// slowest device.
void measure_rails(results::Results& r, const std::string& name, const std::vector<Slow>& slow, int nodes,
                   int rails, std::uint64_t seed) {
  constexpr int draws = 4, samples = 5;
  const RandomStream random = RandomStream(seed, "rails").child(name);
  const auto devices = rows_of_kind(r, "device");
  auto& c = add_case(r, "allreduce", name, "busbw", "B/s", results::Better::higher, "device", devices,
                     std::vector<double>(devices.size(), 1e9), samples * draws);
  c.stage = "groups";
  c.case_key = "rails-key";
  c.parameters["rails"] = rails;
  results::Metric group{"group", "count", results::Better::none, false, results::Role::covariate, true, {}};
  group.values.resize(c.metrics[0].values.size());
  for (int d = 0; d < draws; ++d) {
    const auto order = random.child(std::to_string(d)).permutation(static_cast<std::size_t>(nodes));
    std::vector<int> of(static_cast<std::size_t>(nodes));
    for (std::size_t i = 0; i < order.size(); ++i) of[order[i]] = static_cast<int>(i / 4);
    for (std::size_t e = 0; e < devices.size(); ++e) {
      const int g = of[e / static_cast<std::size_t>(rails)], rail = static_cast<int>(e) % rails;
      double factor = 1;
      for (const auto& s : slow)
        if ((s.rail < 0 || s.rail == rail) && (s.node < 0 || of[static_cast<std::size_t>(s.node)] == g))
          factor = std::min(factor, 1 - s.share);
      for (int s = 0; s < samples; ++s) {
        const auto at =
            e * static_cast<std::size_t>(samples * draws) + static_cast<std::size_t>(samples * d + s);
        const double u =
            random.uniform(static_cast<std::uint64_t>(100000 * d + 1000 * rail + 10 * g + s)) - 0.5;
        c.metrics[0].values[at] = 1e9 * factor * std::exp(0.02 * u);
        group.values[at] = 1e6 * d + rails * g + rail;
      }
    }
  }
  c.metrics.push_back(group);
}

results::Results rails_run(const std::vector<Slow>& slow, int nodes = 32, int rails = 4,
                           std::uint64_t seed = 1) {
  auto r = cluster(nodes, rails);
  measure_rails(r, rails_name, slow, nodes, rails, seed);
  add_selftest(r, "allreduce");
  return r;
}

std::vector<std::string> accused_rails(const results::VerdictData& v) {
  std::vector<std::string> names;
  for (const auto& f : v.findings)
    if (f.severity != "INFO") names.push_back(f.level + " " + f.kind + " " + f.name);
  return names;
}

TEST(VerdictRails, TheSlowDeviceOfANodeIsNamedAndItsSiblingsAreNot) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    auto r = rails_run({{17, 2, 0.4}}, 32, 4, seed);
    const auto v = judge(r);
    ASSERT_EQ(accused_rails(v), std::vector<std::string>{"device slow node17/cores4-5"}) << seed;
    EXPECT_NEAR(*v.findings[0].deficit, 0.4, 0.03);
    const auto asked = verdict::retests(r, verdict::options_from(r));
    ASSERT_EQ(asked.size(), 1U);
    EXPECT_EQ(asked[0].candidates, std::vector{row_named(r, "node17/cores4-5")});
    measure_rails(r, std::string(rails_name) + ".c1", {{17, 2, 0.4}}, 32, 4, seed + 100);
    r.plan.pop_back();
    const auto again = judge(r);
    ASSERT_EQ(accused_rails(again), std::vector<std::string>{"device slow node17/cores4-5"}) << seed;
    EXPECT_TRUE(again.findings[0].confirmed);
  }
}

TEST(VerdictRails, TwoOfFourDevicesAreNotTheNode) {
  EXPECT_EQ(accused_rails(judge(rails_run({{9, 1, 0.4}, {9, 3, 0.4}}))),
            (std::vector<std::string>{"device slow node9/cores2-3", "device slow node9/cores6-7"}));
}

TEST(VerdictRails, ANodeSlowOnAllItsRailsIsOneFinding) {
  const auto v = judge(rails_run({{9, -1, 0.4}}));
  ASSERT_EQ(accused_rails(v), std::vector<std::string>{"node slow node9"});
  EXPECT_THAT(v.findings[0].text, HasSubstr("on all its rails"));
}

TEST(VerdictRails, ASlowRailIsOneFindingWithItsDevices) {
  auto r = rails_run({{-1, 3, 0.4}});
  const auto v = judge(r);
  ASSERT_EQ(accused_rails(v), std::vector<std::string>{"cluster split cluster"});
  EXPECT_THAT(v.findings[0].text, HasSubstr("rail 3"));
  EXPECT_EQ(v.findings[0].members.size(), 32U);
  EXPECT_EQ(v.findings[0].members.front(), "node0/cores6-7");
  EXPECT_TRUE(accused_rails(judge(rails_run({{-1, 3, 0.2}}))).empty());  // rails may differ by design
  EXPECT_TRUE(accused_rails(judge(rails_run({{-1, 0, 0.4}, {-1, 1, 0.4}, {-1, 3, 0.4}})))
                  .empty());  // which of them is the odd one?
}

TEST(VerdictRails, HealthyRailsAccuseNobody) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed)
    for (const int nodes : {8, 16, 64})
      EXPECT_TRUE(accused_rails(judge(rails_run({}, nodes, 4, seed))).empty()) << nodes << " " << seed;
}

}  // namespace
}  // namespace assay
