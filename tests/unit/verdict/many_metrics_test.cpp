// SPDX-License-Identifier: Apache-2.0
// Simulated nodes of several devices, and metrics that move together.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "fleet.hpp"
#include "simulate/simulate.hpp"
#include "verdict/baseline.hpp"

namespace assay {
namespace {

using namespace fabricate;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

simulate::Spec of_devices(std::int64_t nodes, std::int64_t devices, std::uint64_t seed,
                          const std::vector<std::string>& faults) {
  simulate::Spec spec;
  spec.nodes = nodes;
  spec.devices_per_node = devices;
  spec.metrics = simulate::pick_metrics({"gemm", "memory"});
  spec.seed = seed;
  for (const auto& fault : faults) spec.faults.push_back(simulate::parse_fault(fault));
  return spec;
}

std::set<std::string> failed(const results::VerdictData& v) {
  std::set<std::string> names;
  for (const auto& f : v.findings)
    if (f.severity == "FAIL") names.insert(f.name);
  return names;
}

/// Devices differ in all metrics alike: what is far out in all of them is no chance of one of thirty.
TEST(VerdictManyMetrics, ASlowDeviceIsFoundWhereMetricsMoveTogether) {
  for (const auto& [nodes, devices, cv, percent] : {std::tuple{12, 8, 0.01, 12},
                                                    {12, 8, 0.005, 8},
                                                    {48, 2, 0.005, 8},
                                                    {100, 1, 0.005, 5},
                                                    {24, 1, 0.01, 12}})
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      auto spec = of_devices(nodes, devices, seed,
                             {"slow:node=3,device=0,suite=memory,percent=" + std::to_string(percent)});
      spec.device_cv = cv;
      const auto r = simulate::run(spec);
      EXPECT_THAT(failed(*r.verdict), UnorderedElementsAre(HasSubstr("03/gpu0")))
          << nodes << " " << devices << " " << percent << " " << seed;
    }
}

/// Its clock explains what it lacks: at equal clock nothing is wrong with it.
TEST(VerdictManyMetrics, AThrottledDeviceIsFoundWhateverItLoses) {
  for (const int percent : {8, 12, 15, 20, 25, 40})
    for (const auto& [nodes, devices] : {std::pair{64, 1}, {20, 3}}) {
      auto spec = of_devices(nodes, devices, static_cast<std::uint64_t>(percent),
                             {"throttle:node=10,device=0,percent=" + std::to_string(percent)});
      spec.clock_cv = 0.005;
      spec.node_cv = devices > 1 ? 0.01 : 0;
      const auto r = simulate::run(spec);
      EXPECT_THAT(failed(*r.verdict), UnorderedElementsAre(HasSubstr("10/gpu0")))
          << percent << " " << devices;
    }
}

/// A clock at 40 % is far outside of what tells how rates follow clocks: six such parts were a faster kind.
/// Where most are throttled, what is not is no slow part: it was FAIL as slow at equal clock.
TEST(VerdictManyMetrics, ThrottledDevicesAreNamedAndNoSoundOne) {
  const auto run = [](std::int64_t nodes, int first, int last, int percent) {
    auto spec = of_devices(nodes, 1, 5,
                           {"throttle:node=" + std::to_string(first) + "-" + std::to_string(last) +
                            ",percent=" + std::to_string(percent)});
    spec.clock_cv = 0.001;
    return simulate::run(spec);
  };
  for (const int percent : {15, 60, 90}) {
    const auto few = run(64, 0, 5, percent);
    EXPECT_EQ(failed(*few.verdict).size(), 6U) << percent;
  }
  for (const int percent : {30, 60}) {
    const auto half = run(12, 3, 8, percent);
    EXPECT_EQ(half.verdict->state, "INCONCLUSIVE") << percent << all_reasons(*half.verdict);
    EXPECT_THAT(all_reasons(*half.verdict), HasSubstr("; their clocks are " + std::to_string(percent)));
    const auto most = run(12, 1, 11, percent);
    EXPECT_TRUE(failed(*most.verdict).empty()) << percent << all_reasons(*most.verdict);
  }
}

/// Samples that fail now and then in many metrics of a device are one story.
TEST(VerdictManyMetrics, DipsAndImpossibleValuesOfADeviceAreToldOnce) {
  auto spec = of_devices(10, 1, 1, {"slow:node=3,percent=40,duty=0.4"});
  spec.samples = 100;
  const auto dips = simulate::run(spec);
  std::map<std::string, int> by_suite;
  for (const auto& f : dips.verdict->findings)
    if (f.severity == "WARN") ++by_suite[f.suite];
  EXPECT_EQ(by_suite["gemm"], 1);
  EXPECT_EQ(by_suite["memory"], 1);
  const auto dead = simulate::run(of_devices(7, 1, 1, {"dead:node=4,duty=0.3"}));
  const auto& reasons = dead.verdict->reasons;
  EXPECT_EQ(std::count_if(reasons.begin(), reasons.end(),
                          [](const auto& r) { return r.find("an impossible value") != std::string::npos; }),
            1);
}

/// Links without a rate were a gap (INCONCLUSIVE), while those with a millionth of it were FAIL of their
/// node.
TEST(VerdictImpossible, ThePartAllOfWhoseLinksAreDeadIsNamed) {
  for (const auto& [nodes, per_node, fault, part] :
       {std::tuple{16, 1, "dead:nic=0,node=5", "sim05"},
        {4, 1, "dead:nic=0,node=2,value=-5", "sim02"},
        {8, 4, "dead:nic=1,node=5", "sim05/nic1"},
        {16, 1, "dead:pair=3>7,value=inf", "sim03/gpu0>sim07/gpu0"}}) {
    auto spec = of_devices(nodes, per_node, 1, {fault});
    spec.nics_per_node = per_node;
    spec.metrics = simulate::pick_metrics({"p2p"});
    const auto r = simulate::run(spec);
    EXPECT_EQ(r.verdict->state, "FAIL") << fault;
    EXPECT_THAT(failed(*r.verdict), UnorderedElementsAre(part)) << fault;
    EXPECT_THAT(r.verdict->findings.front().text, HasSubstr("judged as the slowest of all")) << fault;
    for (const auto& reason : r.verdict->reasons)
      EXPECT_THAT(reason, ::testing::Not(HasSubstr("impossible")));
  }
}

/// No part is named for single samples without a rate, and they stay a gap.
TEST(VerdictImpossible, SingleDeadSamplesOfLinksStayOpen) {
  auto spec = of_devices(16, 1, 1, {"dead:nic=0,node=5,duty=0.2"});
  spec.metrics = simulate::pick_metrics({"p2p"});
  const auto r = simulate::run(spec);
  EXPECT_TRUE(failed(*r.verdict).empty());
  EXPECT_EQ(r.verdict->state, "INCONCLUSIVE");
  EXPECT_THAT(r.verdict->reasons.front(), HasSubstr("impossible value"));
}

/// Half speed in two fifths to three fifths of the samples was PASS with a note, or PASS, where the median
/// fell between the two rates or the retest did.
TEST(VerdictManyMetrics, APartOfTwoRatesIsNamed) {
  int named = 0;
  constexpr int runs = 24;
  for (int i = 0; i < runs; ++i) {
    auto spec = of_devices(i % 2 == 0 ? 16 : 4, 1, static_cast<std::uint64_t>(i),
                           {"slow:node=3,percent=50,duty=0.4"});
    spec.metrics = simulate::pick_metrics({"memory/triad-*"});
    if (i % 3 == 0) spec.faults = {simulate::parse_fault("slow:node=3,percent=50,duty=0.5")};
    bool own = false;
    const auto verdict = *simulate::run(spec).verdict;
    for (const auto& f : verdict.findings) {
      if (f.severity == "INFO") continue;
      EXPECT_THAT(f.text, HasSubstr("sim03")) << i;
      own = true;
    }
    named += own ? 1 : 0;
  }
  EXPECT_GE(named, 22);
}

/// What one metric of a device lacks against its other metrics is not hidden by how devices differ.
TEST(VerdictManyMetrics, OneSlowMetricIsFoundWhereMetricsMoveTogether) {
  for (const auto& [nodes, devices, cv, percent] : {std::tuple{12, 8, 0.01, 8}, {12, 8, 0.005, 5}})
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      auto spec = of_devices(nodes, devices, seed,
                             {"slow:node=3,device=0,case=triad-alone,percent=" + std::to_string(percent)});
      spec.device_cv = cv;
      const auto r = simulate::run(spec);
      EXPECT_THAT(failed(*r.verdict), UnorderedElementsAre("sim03/gpu0"))
          << nodes << " " << percent << " " << seed;
    }
}

TEST(VerdictManyMetrics, HealthyDevicesWhoseMetricsMoveTogetherAreNotAccused) {
  for (const bool heavy : {false, true})
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      auto spec = of_devices(12, 8, seed, {});
      spec.device_cv = 0.01;
      if (heavy) spec.population = simulate::Population::heavy;
      EXPECT_EQ(simulate::run(spec).verdict->state, "PASS") << heavy << " " << seed;
    }
}

/// Devices that differ by a fifth of what their node lacks: none stands out, the node does.
TEST(VerdictManyMetrics, ASlowNodeIsFoundAmongNodesWhoseDevicesDiffer) {
  for (const auto& [nodes, cv, percent] : {std::tuple{64, 0.02, 10}, {64, 0.01, 5}, {16, 0.01, 8}})
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      auto spec = of_devices(nodes, 8, seed, {"slow:node=3,percent=" + std::to_string(percent)});
      spec.metrics = simulate::pick_metrics({"memory"});
      spec.device_cv = cv;
      spec.between_cv = 0.001;
      EXPECT_THAT(failed(*simulate::run(spec).verdict), UnorderedElementsAre("sim03"))
          << nodes << " " << percent << " " << seed;
    }
}

/// Most parts near a common ceiling and the others in a tail below it: the end of the tail is no outlier, and
/// a part far beyond it is one.
TEST(VerdictManyMetrics, TheTailBelowACeilingIsNotAccused) {
  for (const auto population : {simulate::Population::capped, simulate::Population::exponential}) {
    int told = 0;
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
      simulate::Spec spec;
      spec.nodes = 60;
      spec.seed = seed;
      spec.population = population;
      spec.between_cv = 0.01;
      spec.metrics = simulate::pick_metrics({"memory"});
      told += simulate::run(spec).verdict->state == "PASS" ? 0 : 1;
      if (seed > 3) continue;
      spec.between_cv = 0.003;
      spec.faults = {simulate::parse_fault("slow:node=3,percent=10,suite=memory")};
      EXPECT_EQ(simulate::run(spec).verdict->state, "FAIL") << seed;
    }
    EXPECT_LE(told, 2);
  }
}

/// Normal noise and normal differences of nodes make heavy tails look light, and their extremes pass 3 %.
TEST(VerdictManyMetrics, HeavyTailsBesideNormalSpreadAreNotAccused) {
  int failures = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    auto spec = of_devices(32, 8, seed, {});
    spec.population = simulate::Population::heavy;
    spec.node_cv = 0.01;
    spec.within_cv = 0.005;
    failures += simulate::run(spec).verdict->state == "FAIL";
  }
  EXPECT_LE(failures, 1);  // four before
}

/// Devices of one node that lie together are one value of the nodes, not several of a heavy tail or a group.
TEST(VerdictManyMetrics, HealthyNodesThatDifferAreNotAccused) {
  for (const auto& [nodes, devices, heavy, node_cv] : {std::tuple{20, 4, true, 0.007}, {6, 8, false, 0.01}}) {
    int loud = 0;
    for (std::uint64_t seed = 109; seed <= 117; ++seed) {
      auto spec = of_devices(nodes, devices, seed, {});
      spec.metrics = simulate::pick_metrics({heavy ? "30" : "memory"});
      if (heavy) spec.population = simulate::Population::heavy;
      spec.node_cv = node_cv;
      spec.between_cv = heavy ? spec.between_cv : 0.002;
      spec.device_cv = heavy ? spec.device_cv : 0.002;
      loud += simulate::run(spec).verdict->state != "PASS";
    }
    EXPECT_EQ(loud, 0) << nodes << "x" << devices;
  }
}

TEST(VerdictManyMetrics, ASlowNodeOrDeviceIsFoundWhereNodesDiffer) {
  for (const std::string fault : {"slow:node=3,percent=5", "slow:node=3,device=2,percent=5"})
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      auto spec = of_devices(12, 8, seed, {fault});
      spec.metrics = simulate::pick_metrics({"memory"});
      spec.node_cv = 0.005;
      spec.between_cv = 0.002;
      EXPECT_THAT(failed(*simulate::run(spec).verdict),
                  UnorderedElementsAre(fault.find("device") == std::string::npos ? "sim03" : "sim03/gpu2"))
          << fault << " " << seed;
    }
}

/// A kind of part comes by whole nodes: a device that is slow beside healthy ones is none of it.
TEST(VerdictManyMetrics, ASlowDeviceIsNotOfTheKindOfASlowNode) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    auto spec = of_devices(5, 8, seed, {"slow:node=1,percent=8", "slow:node=3,device=2,percent=10"});
    spec.metrics = simulate::pick_metrics({"12"});
    EXPECT_TRUE(failed(*simulate::run(spec).verdict).contains("sim03/gpu2")) << seed;
  }
}

/// Nodes differ by more than the device lacks: it is slow against the devices of its own node only.
TEST(VerdictManyMetrics, ADeviceThatIsSlowForItsNodeIsAWarning) {
  const auto judged = [](std::uint64_t seed, const std::vector<std::string>& faults) {
    auto spec = of_devices(16, 8, seed, faults);
    spec.metrics = simulate::pick_metrics({"gemm"});
    spec.node_cv = 0.03;
    return simulate::run(spec).verdict->findings;
  };
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    EXPECT_TRUE(judged(seed, {}).empty()) << seed;
    const auto one = judged(seed, {"slow:node=5,device=3,percent=6"});
    ASSERT_EQ(one.size(), 1U) << seed;
    EXPECT_EQ(one[0].name, "sim05/gpu3");
    EXPECT_EQ(one[0].severity, "WARN");
    EXPECT_THAT(one[0].text, HasSubstr("of the 7 other parts of its node"));
  }
  const auto all = judged(1, {"slow:device=3,percent=6"});
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].members.size(), 16U);
  EXPECT_THAT(all[0].text, HasSubstr("16 of 128 are slow for their nodes"));
}

TEST(VerdictManyMetrics, PartsThatAreSlowForTheirNodesAreCountedByModel) {
  auto spec = of_devices(16, 8, 1, {"slow:device=3,percent=6"});
  spec.metrics = simulate::pick_metrics({"gemm"});
  spec.node_cv = 0.03;
  auto r = simulate::run(spec);
  auto& models = r.inventory["node"].text["cpu_model"];
  for (std::size_t n = 0; n < models.size(); ++n) models[n] = n % 2 == 0 ? "A" : "B";
  std::vector<std::string> texts;
  for (const auto& f : verdict::judge(r, verdict::options_from(r)).findings)
    if (f.kind == "split") texts.push_back(f.text);
  ASSERT_EQ(texts.size(), 2U);
  for (const auto& text : texts) EXPECT_THAT(text, HasSubstr("8 of 64 are slow for their nodes"));
}

TEST(VerdictManyMetrics, ANodeThatIsLostWithItsDevicesIsOneFinding) {
  for (const std::string kind : {"lost", "hang"}) {
    const auto whole = simulate::run(of_devices(6, 8, 1, {kind + ":node=3"})).verdict->findings;
    ASSERT_EQ(whole.size(), 1U) << kind;
    EXPECT_EQ(whole[0].name, "sim03");
    EXPECT_EQ(whole[0].level, "node");
    EXPECT_EQ(whole[0].kind, kind);
    EXPECT_EQ(whole[0].members.size(), 8U);
    EXPECT_THAT(whole[0].text,
                HasSubstr("all of its 8 parts " + std::string(kind == "lost" ? "were lost" : "hung")));
    const auto one = simulate::run(of_devices(6, 8, 1, {kind + ":node=3,device=1"})).verdict->findings;
    ASSERT_EQ(one.size(), 1U) << kind;
    EXPECT_EQ(one[0].name, "sim03/gpu1");
  }
}

TEST(VerdictManyMetrics, ANodeThatLosesTwoDevicesInTwoLaunchesFails) {
  for (const std::string node : {"sim02", "sim04"}) {
    auto r = simulate::run(of_devices(6, 8, 1, {"lost:node=2,device=5"}));
    r.events.push_back({0, row_named(r, node + "/gpu3"), "earlier-lost", "its rank was killed"});
    const auto v = verdict::judge(r, verdict::options_from(r));
    EXPECT_EQ(v.state, node == "sim02" ? "FAIL" : "INCONCLUSIVE") << node;
  }
}

/// What a limit or a baseline says of all devices of a node, in several metrics, is one finding.
TEST(VerdictManyMetrics, AllDevicesOfANodeBelowAReferenceAreOneFinding) {
  auto spec = of_devices(12, 4, 2, {"slow:node=3,percent=30", "slow:node=5,device=1,percent=30"});
  spec.metrics = simulate::pick_metrics({"memory"});
  const auto r = simulate::run(spec);
  auto options = verdict::options_from(r);
  options.limits_name = "l.toml";
  options.limits_text =
      "[[limit]]\nmetric = \"memory/triad-*:bandwidth\"\nmin = \"2.8 TB/s\"\n"
      "[[limit]]\nmetric = \"memory/copy-*:bandwidth\"\nmin = \"2.8 TB/s\"\n";
  spec.faults.clear();
  spec.seed = 9;
  options.baseline = std::make_shared<verdict::Baseline>(
      verdict::baseline_of({verdict::snapshot_of(simulate::run(spec), "fleet.h5")}, "fleet.h5"));
  const auto v = verdict::judge(r, options);
  for (const std::string kind : {"limit", "baseline"}) {
    std::map<std::string, const results::Finding*> by_name;
    for (const auto& f : v.findings)
      if (f.reference_kind == kind) {
        EXPECT_TRUE(by_name.emplace(f.name, &f).second) << kind << " " << f.text;
      }
    ASSERT_EQ(by_name.size(), 2U) << kind;
    ASSERT_TRUE(by_name.contains("sim03") && by_name.contains("sim05/gpu1")) << kind;
    EXPECT_EQ(by_name["sim03"]->level, "node");
    EXPECT_EQ(by_name["sim03"]->members.size(), 4U);
    EXPECT_THAT(by_name["sim03"]->text, HasSubstr("all of its 4 parts are slow"));
    EXPECT_THAT(by_name["sim03"]->text, HasSubstr("other metrics of memory"));
  }
}

TEST(VerdictManyMetrics, FloorsThatOneSwitchMissesAreOneFinding) {
  auto spec = of_devices(20, 1, 1, {"slow:leaf=1,percent=30"});
  spec.metrics = simulate::pick_metrics({"p2p"});
  spec.leaves = 5;
  std::vector<std::string> floors;
  for (const auto& f : simulate::run(spec).verdict->findings)
    if (f.reference_kind == "physical") floors.push_back(f.text);
  ASSERT_EQ(floors.size(), 1U);
  EXPECT_THAT(floors[0], HasSubstr("and so in 1 other metric of p2p"));
}

/// One list of the slow devices of a cluster tells nobody which nodes to take out.
TEST(VerdictManyMetrics, WholeNodesAreNamedBesideSingleDevices) {
  for (const std::string percent : {"10", "50"}) {
    const auto r =
        simulate::run(of_devices(40, 8, 1,
                                 {"slow:node=5,percent=" + percent, "slow:node=22,percent=" + percent,
                                  "slow:node=31,device=6,percent=" + percent}));
    EXPECT_THAT(failed(*r.verdict), UnorderedElementsAre("sim05", "sim22", "sim31/gpu6")) << percent;
  }
}

/// Devices that may be of another kind are one list, whichever metric is the worst of each by chance.
TEST(VerdictManyMetrics, DevicesOfWholeNodesThatMayBeAnotherKindAreOneFinding) {
  const auto r =
      simulate::run(of_devices(8, 8, 30, {"slow:node=0,percent=8,suite=gemm", "slow:node=4,percent=12"}));
  EXPECT_THAT(failed(*r.verdict), UnorderedElementsAre("sim04"));
  std::vector<std::string> warned;
  for (const auto& f : r.verdict->findings)
    if (f.severity == "WARN") warned.push_back(f.text);
  ASSERT_EQ(warned.size(), 1U);
  EXPECT_THAT(warned[0], HasSubstr("16 of 64 are slow"));
  EXPECT_THAT(warned[0], HasSubstr("all parts of sim00, sim04"));
}

}  // namespace
}  // namespace assay
