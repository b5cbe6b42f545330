// SPDX-License-Identifier: Apache-2.0
// Several suspects of one part or of one node: which of them is told, and what confirms it.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <span>

#include "fleet.hpp"
#include "measure/robust.hpp"
#include "measure/statistics.hpp"
#include "verdict/judgement.hpp"

namespace assay {
namespace {

using namespace fabricate;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

/// The severity of the finding against peers.
std::string against_peers(const results::VerdictData& v) {
  for (const auto& f : v.findings)
    if (f.reference_kind == "peers") return f.severity;
  return "";
}

/// The retest of the worst metric acquitted its part, which was slow in another metric all the time.
TEST(VerdictPeerStories, ADeficitForAWhileHidesNoLastingOne) {
  auto triad = Fleet::of(64, 0.002), copy = Fleet::of(64, 0.002, 2);
  copy.name = "copy-together";
  const Fleet healthy = triad;
  triad.rate[5] *= 0.88;
  copy.rate[5] *= 0.94;
  auto r = triad.run();
  copy.add(r);
  const auto asked = verdict::retests(r, verdict::options_from(r));
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].name, "triad-together");
  const auto later = [&](const verdict::Retest& retest) -> const Fleet& {
    return retest.name == copy.name ? copy : healthy;
  };
  EXPECT_EQ(Fleet::run_retests(r, later), 2U);
  auto v = judge(r);
  ASSERT_FALSE(v.findings.empty());
  EXPECT_EQ(v.findings[0].severity, "FAIL");
  EXPECT_EQ(v.findings[0].metric, "memory/copy-together:bandwidth");
  EXPECT_EQ(v.findings[0].confirmed_by, "retest");

  ASSERT_EQ(r.cases.back().name, "copy-together.c1");
  r.cases.pop_back();
  v = judge(r);
  EXPECT_EQ(v.state, "WARN") << all_reasons(v);
  EXPECT_THAT(v.findings[0].text, HasSubstr("copy-together:bandwidth"));
  EXPECT_THAT(v.findings[0].text, HasSubstr("not measured again"));
}

/// Rounds of retests are few: what is left after the worst metric is asked for at once.
TEST(VerdictPeerStories, APartThatWasSlowInAllMetricsForAWhileIsANote) {
  std::vector<Fleet> healthy;
  auto r = cluster(64);
  add_selftest(r, "memory");
  for (int k = 0; k < 4; ++k) {
    auto fleet = Fleet::of(64, 0.002, static_cast<std::uint64_t>(1 + k));
    fleet.name = "pattern" + std::to_string(k) + "-together";
    healthy.push_back(fleet);
    fleet.rate[5] *= 0.86 + 0.02 * k;
    fleet.add(r);
  }
  EXPECT_EQ(verdict::retests(r, verdict::options_from(r)).size(), 1U);
  const auto later = [&](const verdict::Retest& retest) -> const Fleet& {
    return *std::ranges::find(healthy, retest.name, &Fleet::name);
  };
  EXPECT_EQ(Fleet::run_retests(r, later), 4U);
  const auto v = judge(r);
  EXPECT_EQ(v.state, "PASS") << all_reasons(v);
  ASSERT_NE(find_kind(v, "intermittent"), nullptr);
  std::erase_if(r.cases,
                [](const auto& c) { return c.name.ends_with(".c1") && c.name != "pattern0-together.c1"; });
  EXPECT_EQ(verdict::retests(r, verdict::options_from(r)).size(), 3U) << "all at once, not one a round";
}

/// A metric that only warns was not told beside a refuted one. It is measured again, too.
TEST(VerdictPeerStories, ARefutedMetricHidesNoWarningOfAnother) {
  auto triad = Fleet::of(64, 0.001), copy = Fleet::of(64, 0.001, 2);
  copy.name = "copy-together";
  const Fleet healthy = triad, healthy_copy = copy;
  copy.rate[5] = 1e11 * std::exp(-0.0265);
  auto alone = copy.run();
  ASSERT_EQ(Fleet::run_retests(alone, copy), 0U) << "no fault";
  ASSERT_EQ(against_peers(judge(alone)), "WARN");
  triad.rate[5] *= 0.88;
  for (const bool lasting : {true, false}) {
    auto r = triad.run();
    copy.add(r);
    const auto later = [&](const verdict::Retest& retest) -> const Fleet& {
      return retest.name != copy.name ? healthy : lasting ? copy : healthy_copy;
    };
    EXPECT_EQ(Fleet::run_retests(r, later), 2U);
    const auto v = judge(r);
    EXPECT_EQ(against_peers(v), lasting ? "WARN" : "INFO") << all_reasons(v);
    if (lasting) {
      EXPECT_EQ(v.findings[0].metric, "memory/copy-together:bandwidth");
    }
  }
}

/// Metrics of part 5, each slower by the first factor in the screening and by the second one later; returns
/// the fleets as they are later.
std::vector<Fleet> add_metrics(results::Results& r, const std::vector<std::pair<double, double>>& slow,
                               double first_block_s = 1) {
  std::vector<Fleet> later;
  for (const auto& [first, second] : slow) {
    const std::size_t k = later.size();
    auto fleet = Fleet::of(64, 0.0005, 1 + k);
    fleet.name = "pattern" + std::to_string(k) + "-together";
    later.push_back(fleet);
    later.back().rate[5] *= second;
    fleet.rate[5] *= first;
    if (k == 0) fleet.block_s = first_block_s;
    fleet.add(r);
  }
  return later;
}

std::size_t retest_metrics(results::Results& r, const std::vector<Fleet>& later) {
  return Fleet::run_retests(r, [&](const verdict::Retest& retest) -> const Fleet& {
    return *std::ranges::find(later, retest.name, &Fleet::name);
  });
}

/// The worst is gone in its retest, the second stays open, and the third is confirmed, or the first lasted.
TEST(VerdictPeerStories, AnOpenMetricHidesNoFaultOfAnother) {
  for (const bool lasted : {false, true}) {
    auto r = cluster(64);
    add_selftest(r, "memory");
    const auto later = add_metrics(r, {{0.88, 1}, {0.9, 0.973}, {0.94, lasted ? 1 : 0.94}}, lasted ? 35 : 1);
    EXPECT_EQ(retest_metrics(r, later), 3U);
    const auto v = judge(r);
    ASSERT_EQ(count_severity(v, "FAIL"), 1U) << all_reasons(v);
    EXPECT_EQ(v.findings[0].confirmed_by, lasted ? "blocks" : "retest");
    EXPECT_THAT(v.findings[0].metric, HasSubstr(lasted ? "pattern0" : "pattern2"));
  }
}

/// They counted as further candidates, and the interval of every other part was wider.
TEST(VerdictPeerStories, MetricsBesideARefutedOneWidenNoOtherInterval) {
  auto r = cluster(64);
  add_selftest(r, "memory");
  auto later = add_metrics(r, {{0.88, 1}, {0.9, 0.9}, {0.91, 0.91}, {0.92, 0.92}});
  auto& values = first_case(r).metrics[0].values;
  for (std::size_t s = 0; s < first_case(r).samples(); ++s) values[20 * first_case(r).samples() + s] *= 0.93;
  later[0].rate[20] *= 0.93;
  EXPECT_EQ(retest_metrics(r, later), 4U);
  const auto interval_in = [](const results::Results& run) {
    const auto v = judge(run);
    const auto f = std::ranges::find(v.findings, "node20/cores0-1", &results::Finding::name);
    EXPECT_NE(f, v.findings.end());
    return f == v.findings.end() ? std::pair(0.0, 0.0) : std::pair(*f->ci_low, *f->ci_high);
  };
  auto alone = r;
  std::erase_if(alone.cases, [](const auto& c) { return !c.name.starts_with("pattern0"); });
  EXPECT_EQ(interval_in(r), interval_in(alone));
}

/// What few peers leave open became a warning where a retest found the part slow, too.
TEST(VerdictPeerStories, AWarningReplacesNothingThatIsOpen) {
  auto fleet = Fleet::of(64, 0.001, 2);
  fleet.name = "copy-together";
  fleet.rate[5] *= 0.976;
  const auto r = fleet.run();
  const auto options = verdict::options_from(r);
  const std::string name = "node5/cores0-1";
  for (const bool open : {true, false}) {
    verdict::Judgement j(r, options);
    verdict::collect_series(j);
    const auto s = std::ranges::find(j.series, "memory/copy-together:bandwidth", &verdict::Series::full);
    ASSERT_NE(s, j.series.end());
    const auto row = row_named(r, name);
    auto f = j.about(*s, row, "WARN", "abnormality", "slow");
    f.reference_kind = "peers";
    j.add(std::move(f), {row}, open);
    verdict::judge_peers(j);
    std::erase_if(j.found, [&](const auto& found) { return found.finding.name != name; });
    ASSERT_EQ(j.found.size(), 1U);
    EXPECT_EQ(j.found[0].finding.severity, "WARN");
    EXPECT_EQ(j.found[0].inconclusive, open);
  }
}

/// A larger deficit that is only worth a note, since healthy parts differ as much.
TEST(VerdictPeerStories, ANoteHidesNoWarning) {
  auto wide = Fleet::of(64, 0), narrow = Fleet::of(64, 0.001, 2);
  for (std::size_t i = 0; i < 64; ++i)
    wide.rate[i] *= std::exp(0.04 * normal_quantile((static_cast<double>(i) + 0.5) / 64));
  wide.rate[5] = 1e11 * std::exp(-0.25);
  narrow.name = "copy-together";
  narrow.rate[5] *= 0.976;
  ASSERT_EQ(against_peers(judge(wide.run())), "INFO");
  ASSERT_EQ(against_peers(judge(narrow.run())), "WARN");
  auto r = wide.run();
  narrow.add(r);
  r.cases.back().kind = "rank";  // else both are judged together, too
  const auto v = judge(r);
  EXPECT_EQ(against_peers(v), "WARN") << all_reasons(v);
  EXPECT_EQ(v.state, "WARN");
}

/// A throttle counter confirms what it rose beside, in the same measurement.
TEST(VerdictPeerStories, AThrottleCounterOfAnotherCaseConfirmsNothing) {
  auto fleet = Fleet::of(64, 0.002);
  fleet.suite = "gemm", fleet.name = "fp32-n2048-together", fleet.metric = "throughput",
  fleet.unit = "FLOP/s";
  std::normal_distribution<double> d;
  for (std::size_t i = 0; i < 64; ++i) {
    fleet.clock.push_back(1.5e9 * std::exp(0.003 * d(fleet.random)) * (i == 9 ? 0.75 : 1));
    fleet.rate[i] *= fleet.clock[i] / 1.5e9;
  }
  const auto r = fleet.run();
  EXPECT_EQ(against_peers(judge(r)), "WARN");
  const std::string own = "gemm/fp32-n2048-together", sum = "nvml_violation_thermal_ns";
  const auto with = [&](const std::string& path, const std::string& counter, const char* part,
                        bool hardware_too) {
    auto counted = r;
    counted.counters.push_back({path, row_named(r, part), counter, 0, 5e9});
    if (hardware_too)
      counted.counters.push_back({path, row_named(r, part), "nvml_violation_hw_thermal_ns", 0, 0});
    return against_peers(judge(counted));
  };
  EXPECT_EQ(with(own, "throttle_package", "node9", false), "FAIL");
  EXPECT_EQ(with(own + ".p2", "throttle_package", "node9", false), "FAIL");
  EXPECT_EQ(with(own + ".c1", "throttle_package", "node9", false), "WARN");
  EXPECT_EQ(with("memory/triad-together", "throttle_package", "node9", false), "WARN");
  EXPECT_EQ(with(own, sum, "node9/cores0-1", false), "FAIL");
  EXPECT_EQ(with(own, sum, "node9/cores0-1", true), "WARN") << "the hardware throttled nothing";
}

/// One device and one NUMA domain of a node that has two of each: as many as it has devices.
TEST(VerdictPeerStories, PartsOfTwoKindsAreNotAllPartsOfANode) {
  auto devices = Fleet::of(24, 0.002), domains = Fleet::of(24, 0.002, 2, 2e11);
  devices.rate[6] *= 0.93;
  domains.rate[15] *= 0.93;
  auto r = devices.run(2);
  for (const auto node : rows_of_kind(r, "node")) {
    const std::string name = r.entities[static_cast<std::size_t>(node)].name + "/numa1";
    r.entities.push_back({"numa", "id-" + name, "path", name, node, -1});
  }
  add_case(r, "memory", "copy-alone", "bandwidth", "B/s", results::Better::higher, "numa",
           rows_of_kind(r, "numa"), domains.rate, 12);
  std::vector<std::string> named;
  for (const auto& f : judge(r).findings)
    if (f.severity != "INFO") named.push_back(f.name);
  EXPECT_THAT(named, UnorderedElementsAre("node3/cores0-1", "node3/numa1"));
}

/// The case of a part may be measured again for another metric, or for another part.
TEST(VerdictPeerStories, NoRetestClearsADeviceThatIsSlowForItsNodeOnly) {
  const std::string name = "sim05/gpu3";
  simulate::Spec spec;
  spec.nodes = 16;
  spec.devices_per_node = 8;
  spec.metrics = simulate::pick_metrics({"gemm"});
  spec.node_cv = 0.03;
  spec.seed = 1;
  spec.faults.push_back(simulate::parse_fault("slow:node=5,device=3,percent=6"));
  auto r = simulate::run(spec);
  const std::size_t screened = r.cases.size();
  std::size_t measured_again = 0;
  for (std::size_t i = 0; i < screened; ++i) {
    auto c = r.cases[i];
    if (c.suite != "gemm" || c.entity.size() != 128 || results::is_retest(c.name)) continue;
    c.name += ".c9";
    const std::size_t n = c.samples();
    for (std::size_t e = 0; e < c.entity.size(); ++e) {
      if (r.entities[static_cast<std::size_t>(c.entity[e])].name != name) continue;
      // As fast as most devices of all nodes.
      auto& values = c.metrics[0].values;
      const auto own = values.begin() + static_cast<std::ptrdiff_t>(e * n);
      const double factor = median(values) / median(std::span(own, n));
      std::for_each(own, own + static_cast<std::ptrdiff_t>(n), [&](double& v) { v *= factor; });
      ++measured_again;
    }
    r.cases.push_back(std::move(c));
  }
  ASSERT_GT(measured_again, 0U);
  const auto v = judge(r);
  const auto found = std::ranges::find(v.findings, name, &results::Finding::name);
  ASSERT_NE(found, v.findings.end()) << all_reasons(v);
  EXPECT_EQ(found->severity, "WARN");
  EXPECT_THAT(found->text, HasSubstr("of the 7 other parts of its node"));
}

}  // namespace
}  // namespace assay
