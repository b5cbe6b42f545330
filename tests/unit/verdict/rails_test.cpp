// SPDX-License-Identifier: Apache-2.0
// Collectives over random groups of each rail by itself: which device of a node it is, or which rail.
#include <gmock/gmock.h>

#include "simulate/simulate.hpp"
#include "tests/unit/fabricate.hpp"
#include "verdict/collectives.hpp"

namespace assay {
namespace {

using namespace fabricate;
using ::testing::HasSubstr;

/// All-reduce over random groups of 4 nodes, each of the `rails` devices of a node with those of its number;
/// `slow` are faults of that suite as for `assay simulate --fault`, without kind and suite.
simulate::Spec rails_of(const std::vector<std::string>& slow, std::int64_t nodes = 32,
                        std::uint64_t seed = 1) {
  simulate::Spec spec;
  spec.nodes = nodes;
  spec.devices_per_node = 4;
  spec.samples = 5;
  spec.spike_share = 0;
  spec.seed = seed;
  spec.metrics = simulate::pick_metrics({"allreduce/allreduce-groups-*"});
  spec.metrics[0].name = "allreduce-rails-16777216-mpi";
  spec.metrics[0].parameters["rails"] = spec.devices_per_node;
  for (const std::string& fault : slow)
    spec.faults.push_back(simulate::parse_fault("slow:suite=allreduce," + fault));
  return spec;
}

results::Results rails_run(const std::vector<std::string>& slow, std::int64_t nodes = 32,
                           std::uint64_t seed = 1) {
  auto r = simulate::screen(rails_of(slow, nodes, seed));
  r.info.injected = false;
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
    const std::string fault = "node=17,device=2,percent=40";
    auto r = rails_run({fault}, 32, seed);
    const auto v = judge(r);
    ASSERT_EQ(accused_rails(v), std::vector<std::string>{"device slow sim17/gpu2"}) << seed;
    EXPECT_NEAR(*v.findings[0].deficit, 0.4, 0.03);
    const auto asked = verdict::retests(r, verdict::options_from(r));
    ASSERT_EQ(asked.size(), 1U);
    EXPECT_EQ(asked[0].candidates, std::vector{row_named(r, "sim17/gpu2")});
    EXPECT_EQ(simulate::run_retests(r, rails_of({fault}, 32, seed), verdict::options_from(r)), 1U);
    const auto again = judge(r);
    ASSERT_EQ(accused_rails(again), std::vector<std::string>{"device slow sim17/gpu2"}) << seed;
    EXPECT_TRUE(again.findings[0].confirmed);
  }
}

TEST(VerdictRails, TwoOfFourDevicesAreNotTheNode) {
  EXPECT_THAT(accused_rails(judge(rails_run({"node=9,device=1+3,percent=40"}))),
              ::testing::UnorderedElementsAre("device slow sim09/gpu1", "device slow sim09/gpu3"));
}

TEST(VerdictRails, ANodeSlowOnAllItsRailsIsOneFinding) {
  const auto v = judge(rails_run({"node=9,percent=40"}));
  ASSERT_EQ(accused_rails(v), std::vector<std::string>{"node slow sim09"});
  EXPECT_THAT(v.findings[0].text, HasSubstr("on all its rails"));
}

TEST(VerdictRails, ASlowRailIsOneFindingWithItsDevices) {
  const auto v = judge(rails_run({"device=3,percent=40"}));
  ASSERT_EQ(accused_rails(v), std::vector<std::string>{"cluster split cluster"});
  EXPECT_THAT(v.findings[0].text, HasSubstr("rail 3"));
  EXPECT_EQ(v.findings[0].members.size(), 32U);
  EXPECT_EQ(v.findings[0].members.front(), "sim00/gpu3");
  EXPECT_TRUE(
      accused_rails(judge(rails_run({"device=3,percent=20"}))).empty());  // rails may differ by design
  EXPECT_TRUE(
      accused_rails(judge(rails_run({"device=0+1+3,percent=40"}))).empty());  // which of them is the odd one?
}

TEST(VerdictRails, HealthyRailsAccuseNobody) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed)
    for (const int nodes : {8, 16, 64})
      EXPECT_TRUE(accused_rails(judge(rails_run({}, nodes, seed))).empty()) << nodes << " " << seed;
}

}  // namespace
}  // namespace assay
