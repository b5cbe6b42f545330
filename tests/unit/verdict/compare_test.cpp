// SPDX-License-Identifier: Apache-2.0
#include "verdict/compare.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/random.hpp"
#include "normal_noise.hpp"
#include "report/compare.hpp"
#include "simulate/simulate.hpp"
#include "tests/unit/fabricate.hpp"
#include "verdict/compare_shift.hpp"

namespace assay {
namespace {

using namespace fabricate;
using results::Better;
using testing::HasSubstr;
using testing::Not;
using verdict::CompareOptions;
using verdict::CompareResult;
using verdict::Relation;
using verdict::Snapshot;

/// A run of one metric on nodes called `prefix`0...: the medians of 10 samples with deviation c_w around a
/// level of the node, which is drawn with deviation c_b or given.
Snapshot run_of(const std::vector<double>& levels, Noise& noise, double c_w,
                const std::string& prefix = "node") {
  Snapshot run;
  run.source.run_id = run.source.file = prefix;
  verdict::SnapshotSeries s;
  s.suite = "gemm";
  s.name = "fp32";
  s.metric = "throughput";
  s.unit = "FLOP/s";
  s.kind = "node";
  s.case_key = "k";
  s.strata = {""};
  auto rows = std::make_shared<verdict::PartRows>();
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const auto row = static_cast<std::int32_t>(i);
    run.parts.push_back({"node", prefix + std::to_string(i), prefix + std::to_string(i), row, -1, {}});
    rows->part.push_back(row);
    rows->stratum.push_back(0);
    s.log_rate.push_back(static_cast<float>(levels[i] + c_w * 1.2533 / std::sqrt(10.0) * noise.next()));
  }
  s.rows = rows;
  run.series.push_back(s);
  return run;
}

std::vector<double> levels_of(std::size_t n, Noise& noise, double c_b) {
  std::vector<double> levels(n);
  for (double& l : levels) l = std::log(1e11) + c_b * noise.next();
  return levels;
}

/// How often two fleets without a difference are told apart at a nominal 5 %.
double false_alarms(std::size_t nodes, bool paired, std::size_t runs) {
  Noise noise(mix64(nodes, paired ? 1 : 0));
  std::size_t told_apart = 0;
  for (std::size_t r = 0; r < runs; ++r) {
    const auto a = levels_of(nodes, noise, 0.01);
    const auto b = paired ? a : levels_of(nodes, noise, 0.01);
    const auto result =
        verdict::compare({run_of(a, noise, 0.01)}, {run_of(b, noise, 0.01, paired ? "node" : "other")}, {});
    EXPECT_EQ(result.metrics.at(0).paired, paired);
    told_apart += result.metrics.at(0).p < 0.05 ? 1 : 0;
  }
  return static_cast<double>(told_apart) / static_cast<double>(runs);
}

TEST(Compare, EqualFleetsDifferInFivePercentOfRuns) {
  const std::size_t runs = nightly() ? 40000 : 4000;
  // 4 to 6 % is promised; the interval of the count itself is two standard errors.
  const double slack = 2 * std::sqrt(0.05 * 0.95 / static_cast<double>(runs));
  for (const std::size_t nodes : {4U, 8U, 12U, 32U}) {
    for (const bool paired : {false, true}) {
      const double rate = false_alarms(nodes, paired, nodes > 12 ? runs / 2 : runs);
      RecordProperty("rate_" + std::to_string(nodes) + (paired ? "_paired" : ""), std::to_string(rate));
      EXPECT_GT(rate, 0.04 - slack) << nodes << paired;
      EXPECT_LT(rate, 0.06 + slack) << nodes << paired;
    }
  }
}

TEST(Compare, CallsEqualFleetsSameAndFindsWhatDiffers) {
  Noise noise(5);
  int same = 0, slower = 0;
  constexpr int runs = 200;
  for (int r = 0; r < runs; ++r) {
    // sigma of a node's value 1 % without pairs: 0.9 % between nodes, 1 % within.
    const auto a = levels_of(32, noise, 0.009), b = levels_of(32, noise, 0.009);
    same += verdict::compare({run_of(a, noise, 0.01)}, {run_of(b, noise, 0.01, "other")}, {}).relation ==
            Relation::same;
    auto worse = b;
    for (double& l : worse) l -= 0.02;
    slower +=
        verdict::compare({run_of(a, noise, 0.01)}, {run_of(worse, noise, 0.01, "other")}, {}).relation ==
        Relation::slower;
  }
  EXPECT_GE(same, runs * 9 / 10);
  EXPECT_GE(slower, runs * 99 / 100);
}

TEST(Compare, PairsTheSameNodesByIdentityInAnyOrder) {
  Noise noise(9);
  const auto levels = levels_of(12, noise, 0.05);  // nodes differ far more than the runs do
  auto a = run_of(levels, noise, 0.002);
  auto slower = levels;
  for (double& l : slower) l += std::log(0.97);
  auto b = run_of(slower, noise, 0.002);
  std::reverse(b.series[0].log_rate.begin(), b.series[0].log_rate.end());
  auto rows = *b.series[0].rows;
  std::reverse(rows.part.begin(), rows.part.end());
  b.series[0].rows = std::make_shared<verdict::PartRows>(rows);
  const auto result = verdict::compare({a}, {b}, {});
  EXPECT_EQ(result.relation, Relation::slower);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(result.metrics[0].paired);
  EXPECT_NEAR(result.metrics[0].ratio.estimate, 0.97, 0.002);
  EXPECT_EQ(verdict::compare({b}, {a}, {}).relation, Relation::faster);
}

results::Results fleet(int nodes, double rate, int samples = 6, int devices = 1) {
  auto r = cluster(nodes, devices);
  const auto rows = rows_of_kind(r, "device");
  std::vector<double> values;
  for (std::size_t i = 0; i < rows.size(); ++i) values.push_back(rate * wobble(i, 0.004));
  add_case(r, "gemm", "fp32", "throughput", "FLOP/s", Better::higher, "device", rows, values, samples);
  return r;
}

CompareResult compare(const results::Results& a, const results::Results& b,
                      const CompareOptions& options = {}) {
  return verdict::compare(std::vector{&a}, std::vector{&b}, options);
}

TEST(Compare, RefusesFewNodesWhateverTheNumberOfSamples) {
  const auto result = compare(fleet(3, 1e11, 1000, 8), fleet(3, 0.8e11, 1000, 8));
  EXPECT_EQ(result.relation, Relation::insufficient);
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.metrics[0].note, HasSubstr("insufficient nodes: 3"));
  EXPECT_NEAR(result.metrics[0].ratio.estimate, 0.8, 1e-3);
  EXPECT_TRUE(std::isnan(result.metrics[0].p));
  CompareOptions devices;
  devices.device_unit = true;
  EXPECT_EQ(compare(fleet(3, 1e11, 9, 8), fleet(3, 0.8e11, 9, 8), devices).relation, Relation::insufficient);
  EXPECT_EQ(compare(fleet(4, 1e11), fleet(4, 0.8e11)).relation, Relation::slower);
}

TEST(Compare, SamplesAndDevicesDoNotMakeMoreUnits) {
  const auto result = compare(fleet(6, 1e11, 50, 4), fleet(6, 1e11, 50, 4));
  EXPECT_EQ(result.metrics[0].a.units, 6U);
  CompareOptions devices;
  devices.device_unit = true;
  EXPECT_EQ(compare(fleet(6, 1e11, 50, 4), fleet(6, 1e11, 50, 4), devices).metrics[0].a.units, 24U);
}

/// Nodes of 8 devices, of which those for which `slow` says so are slow by `percent`.
results::Results with_slow(int nodes, double percent, const std::function<bool(int node, int device)>& slow,
                           int devices = 8) {
  auto r = fleet(nodes, 1e11, 6, devices);
  auto& c = first_case(r);
  for (std::size_t e = 0; e < c.entities(); ++e) {
    const int row = static_cast<int>(e);
    if (!slow(row / devices, row % devices)) continue;
    for (std::size_t s = 0; s < c.samples(); ++s)
      c.metrics[0].values[e * c.samples() + s] *= 1 - percent / 100;
  }
  return r;
}

std::string notes_of(const CompareResult& result) {
  std::string text;
  for (const auto& note : result.notes) text += note + "\n";
  return text;
}

TEST(Compare, FewSlowDevicesOfNodesAreNamed) {
  const auto healthy = fleet(8, 1e11, 6, 8);
  const auto one = compare(healthy, with_slow(8, 90, [](int n, int d) { return n == 2 && d == 3; }));
  EXPECT_EQ(one.relation, Relation::ambiguous);
  EXPECT_EQ(one.exit_code, 3);
  EXPECT_THAT(notes_of(one), HasSubstr("1 part is slower in B than in A, unlike the others: "
                                       "node2/cores6-7 (gemm/fp32:throughput 90.0 %)"));
  const auto many = compare(healthy, with_slow(8, 60, [](int, int d) { return d == 1 || d == 3 || d == 5; }));
  EXPECT_EQ(many.exit_code, 3);
  EXPECT_THAT(notes_of(many), HasSubstr("24 parts are slower"));
  EXPECT_THAT(notes_of(many), HasSubstr("cores6-7 of 8 nodes (gemm/fp32:throughput 60.0 %)"));
  // A node stands for its devices.
  const auto node = compare(healthy, with_slow(8, 40, [](int n, int) { return n == 5; }));
  EXPECT_THAT(notes_of(node), HasSubstr("1 part is slower in B than in A, unlike the others: node5 ("));
  // What was slow before did not change.
  const auto slow = with_slow(8, 90, [](int n, int d) { return n == 2 && d == 3; });
  EXPECT_EQ(compare(slow, slow).relation, Relation::same);
  EXPECT_TRUE(compare(slow, slow).notes.empty());
}

TEST(Compare, SlowNodesOfAnotherFleetAreNamed) {
  Noise noise(11);
  constexpr std::size_t nodes = 12;
  const auto a = levels_of(nodes, noise, 0.005);
  auto b = levels_of(nodes, noise, 0.005);
  const auto healthy = run_of(b, noise, 0.005, "b");
  b[3] += std::log(0.5);
  b[7] += std::log(0.6);
  const auto slow = run_of(b, noise, 0.005, "b");
  CompareOptions wide;
  wide.margin = 0.02;
  const auto result = verdict::compare({run_of(a, noise, 0.005)}, {slow}, wide);
  EXPECT_EQ(result.relation, Relation::ambiguous);
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(notes_of(result),
              HasSubstr("2 parts of B are slower than its others: b3 (gemm/fp32:throughput "));
  EXPECT_THAT(notes_of(result), HasSubstr("b7"));
  EXPECT_EQ(verdict::compare({run_of(a, noise, 0.005)}, {healthy}, wide).relation, Relation::same);
  // A fleet that has as slow ones itself is no better.
  auto same = a;
  same[0] += std::log(0.5);
  same[1] += std::log(0.6);
  EXPECT_EQ(notes_of(verdict::compare({run_of(same, noise, 0.005)}, {slow}, wide)), "");
}

TEST(Compare, HealthyDevicesAreNotNamed) {
  Noise noise(17);
  int named = 0;
  for (int r = 0; r < 100; ++r) {
    auto a = fleet(8, 1e11, 6, 8), b = a;
    for (auto* side : {&a, &b})
      for (std::size_t i = 0; i < first_case(*side).metrics[0].values.size(); ++i)
        first_case(*side).metrics[0].values[i] *= std::exp(0.02 * noise.next());
    named += compare(a, b).notes.empty() ? 0 : 1;
  }
  EXPECT_EQ(named, 0);
}

TEST(Compare, DevicesThatAreGoneAreNamed) {
  const auto eight = fleet(8, 1e11, 6, 8), seven = fleet(8, 1e11, 6, 7);
  EXPECT_THAT(notes_of(compare(eight, seven)),
              HasSubstr("8 devices have values only in A: cores14-15 of 8 nodes"));
  EXPECT_THAT(notes_of(compare(seven, eight)), HasSubstr("8 devices have values only in B: cores14-15"));
  // A node that is gone stands for its devices.
  EXPECT_EQ(notes_of(compare(eight, fleet(7, 1e11, 6, 8))), "1 node has values only in A: node7\n");
}

TEST(Compare, SaysThatNoMetricIsCommon) {
  auto a = fleet(8, 1e11), b = a;
  first_case(b).name = "fp64";
  const auto text = report::compare_text(compare(a, b), {}, {});
  EXPECT_THAT(text, HasSubstr("no common metric\nINSUFFICIENT (exit 3)"));
  EXPECT_THAT(text, Not(HasSubstr("insufficient nodes")));
}

TEST(Compare, AdjustsForManyMetrics) {
  // One of 20 metrics differs at p about 0.02: by itself a difference, among 20 none.
  Noise noise(3);
  const auto levels = levels_of(10, noise, 0.02);
  Snapshot a = run_of(levels, noise, 0.001), b = a;
  for (std::size_t i = 0; i < 10; ++i)
    b.series[0].log_rate[i] -= static_cast<float>(0.02 * (i < 9 ? 1 : -0.5) + 0.001 * static_cast<double>(i));
  const auto alone = verdict::compare({a}, {b}, {});
  ASSERT_LT(alone.metrics[0].p, 0.05);
  EXPECT_EQ(alone.relation, Relation::slower);
  for (int k = 0; k < 19; ++k) {
    auto more = a.series[0];
    more.name = "fp64-" + std::to_string(k);
    a.series.push_back(more);
    for (float& rate : more.log_rate) rate += static_cast<float>(0.0001 * noise.next());
    b.series.push_back(more);
  }
  const auto many = verdict::compare({a}, {b}, {});
  EXPECT_NE(many.relation, Relation::slower);
  EXPECT_NE(many.relation, Relation::faster);
}

TEST(Compare, AskForTheSameCaseKey) {
  auto a = fleet(6, 1e11), b = fleet(6, 1.5e11);
  first_case(b).case_key = "another library";
  const auto result = compare(a, b);
  EXPECT_EQ(result.relation, Relation::incomparable);
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.metrics[0].note, HasSubstr("another library"));
  CompareOptions vendors;
  vendors.ignore_case_key = true;
  EXPECT_EQ(compare(a, b, vendors).relation, Relation::faster);
}

TEST(Compare, SeparatesTheClockWhereBothRecordedIt) {
  auto with_clock = [](double clock, double rate) {
    auto r = fleet(8, rate);
    auto& c = first_case(r);
    results::Metric m{"clock", "Hz", Better::higher, false, results::Role::covariate, true, {}};
    for (std::size_t i = 0; i < c.metrics[0].values.size(); ++i) m.values.push_back(clock);
    c.metrics.push_back(m);
    return r;
  };
  const auto result = compare(with_clock(2e9, 1e11), with_clock(1.8e9, 0.9e11));
  EXPECT_EQ(result.relation, Relation::slower);
  EXPECT_NEAR(result.metrics[0].clock_ratio, 0.9, 1e-3);
  EXPECT_NEAR(result.metrics[0].at_clock.estimate, 1.0, 1e-3);
  EXPECT_THAT(report::compare_text(result, {}, {}), HasSubstr("at equal clock 1.0000"));
}

TEST(Compare, TimesCountAsRatesAndCollectivesByTheRun) {
  auto timed = [](double seconds, const std::string& suite) {
    auto r = cluster(5);
    const auto rows = rows_of_kind(r, "device");
    std::vector<double> values;
    for (std::size_t i = 0; i < rows.size(); ++i) values.push_back(seconds * wobble(i));
    add_case(r, suite, "latency", "latency", "s", Better::lower, "device", rows, values);
    return r;
  };
  EXPECT_EQ(compare(timed(1e-6, "memory"), timed(2e-6, "memory")).relation, Relation::slower);
  const auto collective = compare(timed(1e-6, "allreduce"), timed(2e-6, "allreduce"));
  EXPECT_EQ(collective.relation, Relation::insufficient);
  EXPECT_THAT(collective.metrics[0].note, HasSubstr("insufficient runs: 1"));
}

TEST(Compare, PrintsWithinEightyColumns) {
  auto a = fleet(30, 1e11), b = fleet(30, 0.9e11);
  first_case(a).name = first_case(b).name = std::string(70, 'x');
  const std::string text = report::compare_text(compare(a, b), {}, {});
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos;
       begin = end + 1, end = text.find('\n', begin))
    EXPECT_LE(end - begin, 80U) << text.substr(begin, end - begin);
  EXPECT_THAT(text, HasSubstr("SLOWER (exit 1)"));
  EXPECT_THAT(text, HasSubstr("; p5"));
}

TEST(CompareShift, AgreesWithTablesAndHandWork) {
  // Hollander and Wolfe: differences 1..10, all positive: estimate 5.5, exact p of the signed ranks 2 / 2^10.
  std::vector<double> d(10);
  std::iota(d.begin(), d.end(), 1.0);
  const auto paired = verdict::paired_shift(d, 0.05);
  EXPECT_DOUBLE_EQ(paired.estimate, 5.5);
  EXPECT_NEAR(paired.p, 2.0 / 1024, 1e-12);
  // Rank sum of 8 and 8 values that do not overlap: p = 2 / C(16, 8).
  std::vector<double> a, b;
  for (int i = 0; i < 8; ++i) {
    a.push_back(i);
    b.push_back(100 + i);
  }
  const auto two = verdict::two_sample_shift(a, b, 0.05);
  EXPECT_DOUBLE_EQ(two.estimate, 100);
  EXPECT_NEAR(two.p, 2.0 / 12870, 1e-12);
  EXPECT_LT(two.low, 100);
  EXPECT_GT(two.high, 100);
  // Mann-Whitney table: 8 and 8 values, 5 % two-sided: U = 13, so the interval starts at the 14th of the 64
  // differences.
  std::vector<double> differences;
  for (const double x : a)
    for (const double y : b) differences.push_back(y - x);
  std::sort(differences.begin(), differences.end());
  EXPECT_DOUBLE_EQ(two.low, differences[13]);
  EXPECT_DOUBLE_EQ(two.high, differences[50]);
}

TEST(CompareShift, WelchByHand) {
  // means 2 and 5, variances 1 and 1, se = sqrt(2/3), df = 4, t(0.975, 4) = 2.776445
  const auto s = verdict::two_sample_shift(std::vector<double>{1, 2, 3}, std::vector<double>{4, 5, 6}, 0.05);
  EXPECT_STREQ(s.method, "Welch");
  EXPECT_DOUBLE_EQ(s.estimate, 3);
  EXPECT_NEAR(s.high - s.low, 2 * 2.776445 * std::sqrt(2.0 / 3), 1e-5);
}

results::Results links(std::int64_t nodes, std::uint64_t run, const std::string& fault = "") {
  simulate::Spec spec;
  spec.nodes = nodes;
  spec.run = run;
  spec.metrics = simulate::pick_metrics({"p2p/bandwidth-uni*"});
  if (!fault.empty()) spec.faults.push_back(simulate::parse_fault(fault));
  return simulate::screen(spec);
}

TEST(Compare, ASingleSlowLinkIsNamed) {
  for (const std::int64_t nodes : {4, 6, 12, 40}) {
    const auto before = links(nodes, 1);
    for (std::uint64_t run = 2; run < 6; ++run)
      EXPECT_THAT(notes_of(compare(before, links(nodes, run))), Not(HasSubstr("link")))
          << nodes << " " << run;
    for (const char* factor : {"0.1", "0.001"}) {
      const auto slow = links(nodes, 2, std::string("slowlink:pair=1>3,factor=") + factor);
      const auto result = compare(before, slow);
      EXPECT_THAT(notes_of(result), HasSubstr("1 link is slower in B than in A, unlike the others: "
                                              "sim01/gpu0>sim03/gpu0"))
          << nodes << notes_of(result);
      EXPECT_EQ(result.exit_code, 3);
    }
  }
}

}  // namespace
}  // namespace assay
