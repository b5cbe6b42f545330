// SPDX-License-Identifier: Apache-2.0
#include "report/report.hpp"

#include <gmock/gmock.h>

#include <set>
#include <sstream>

#include "report/layout.hpp"
#include "report/told_findings.hpp"
#include "tests/unit/fabricate.hpp"

namespace assay {
namespace {

using namespace fabricate;
using results::VerdictData;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

void expect_width(const std::string& text, std::size_t width) {
  for (const auto& line : lines_of(text)) {
    if (line.rfind("file: ", 0) == 0) continue;  // never broken
    EXPECT_LE(report::columns_of(line), width) << line;
  }
}

results::Results slow_run(int nodes) {
  auto r = healthy(nodes);
  auto& m = first_case(r).metrics[0];
  for (std::size_t s = 0; s < 6; ++s) m.values[3 * 6 + s] *= 0.5;
  return r;
}

TEST(Report, SummaryFitsAndNamesTheWorst) {
  const auto r = slow_run(8);
  const auto text = report::summary(r, judge(r), "run.h5", {});
  expect_width(text, 80);
  EXPECT_THAT(text, HasSubstr("fp32 n2048 together: 100 GFLOP/s"));
  EXPECT_THAT(text, HasSubstr("100 GFLOP/s"));
  EXPECT_THAT(text, HasSubstr("worst node3/cores0-1 -50 %"));
  EXPECT_THAT(text, HasSubstr("WARN  node3/cores0-1: gemm/fp32-n2048-together:throughput"));
  EXPECT_THAT(text, HasSubstr("planned=1 passed=1 failed=0 skipped=0 error=0 incomplete=0"));
  EXPECT_THAT(text, HasSubstr("values compared with: limits 0, hardware rates 0, peers only 8, nothing 0"));
  EXPECT_THAT(text, HasSubstr("1 WARN (node3) 7 PASS"));
  EXPECT_THAT(text, HasSubstr("\nWARN (exit 0)\nfile: run.h5\n"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(Report, TheWorstPartIsToldWithWhatItsRetestGave) {
  for (const auto& [again, wanted] :
       {std::pair{1.0, "worst node3/cores0-1 -50 % at first, normal when measured again"},
        std::pair{0.9, "worst node3/cores0-1 -50 % at first, -10 % when measured again"},
        std::pair{0.5, "worst node3/cores0-1 -50 %\n"}}) {
    auto r = slow_run(8);
    auto c = first_case(r);
    c.name += ".c1";
    for (std::size_t s = 0; s < 6; ++s) c.metrics[0].values[3 * 6 + s] = c.metrics[0].values[s] * again;
    r.cases.push_back(std::move(c));
    EXPECT_THAT(report::summary(r, judge(r), "run.h5", {160, false}), HasSubstr(wanted));
  }
}

TEST(Report, LinkInsideANodeNamesTheNodeOnce) {
  auto r = healthy(1, 2);
  r.entities.push_back({"link", "l", "path", "node0/cores0-1>node0/cores2-3", 0, -1});
  r.entities.push_back({"link", "m", "path", "node0/cores2-3>node0/cores0-1", 0, -1});
  const auto links = rows_of_kind(r, "link");
  add_case(r, "p2p", "latency-8-mpi", "latency", "s", results::Better::lower, "link", links, {1e-6, 1.2e-6});
  const auto text = report::summary(r, judge(r), "run.h5", {120, false});
  EXPECT_THAT(text, HasSubstr("worst node0/cores2-3>cores0-1 -8."));
}

TEST(Report, ACaseIsToldInTheWordsOfItsSuite) {
  auto r = healthy(8);
  auto& c = first_case(r);
  c.parameters["title"] = "fp32 GEMM n=2048, all cores";
  c.parameters["share"] = "efficiency of FMA peak";
  results::Metric share{"efficiency", "1", results::Better::higher, false, results::Role::metric, false, {}};
  share.values.assign(c.entity.size(), 0.82);
  c.metrics.push_back(share);
  const auto devices = rows_of_kind(r, "device");
  add_case(r, "gemm", "fp32-exact-n512", "errors", "count", results::Better::lower, "device", devices,
           std::vector<double>(devices.size(), 0));
  const auto text = report::summary(r, judge(r), "run.h5", {});
  EXPECT_THAT(text, HasSubstr("\n  fp32 GEMM n=2048, all cores: 100 GFLOP/s, spread 0."));
  EXPECT_THAT(text, HasSubstr(" %, 82 % of FMA peak\n"));
  EXPECT_THAT(text, HasSubstr("\n  fp32 exact n512: exact\n"));
  expect_width(text, 80);
}

TEST(Report, WrongValuesAreCountedAndNoRate) {
  auto r = healthy(2);
  const auto devices = rows_of_kind(r, "device");
  auto& c = add_case(r, "gemm", "fp64-exact-n512", "errors", "count", results::Better::lower, "device",
                     devices, std::vector<double>(devices.size(), 0), 3);
  c.metrics[0].values[4] = 1;
  c.state = results::CaseState::fail;
  auto text = report::summary(r, judge(r), "run.h5", {120, false});
  EXPECT_THAT(text, HasSubstr("\n  fp64 exact n512: 1 wrong value, on node1/cores0-1\n"));
  r.cases.back().metrics[0].values[0] = 2;
  text = report::summary(r, judge(r), "run.h5", {120, false});
  EXPECT_THAT(text, HasSubstr("\n  fp64 exact n512: 3 wrong values, on node0/cores0-1, node1/cores0-1\n"));
}

TEST(Report, NoShareOfAPeakThatOthersDisturbed) {
  auto r = healthy(8);
  auto& c = first_case(r);
  c.parameters["share"] = "efficiency of FMA peak";
  results::Metric share{"efficiency", "1", results::Better::higher, false, results::Role::metric, false, {}};
  share.values.assign(c.entity.size(), 1.5);
  c.metrics.push_back(share);
  EXPECT_THAT(report::summary(r, judge(r), "run.h5", {}), Not(HasSubstr("of FMA peak")));
}

TEST(Report, ManyUncertainMediansAreOneNote) {
  VerdictData v;
  v.state = "PASS";
  for (int i = 0; i < 30; ++i) {
    results::Finding f;
    f.severity = "INFO";
    f.kind = "noisy";
    f.text = "memory/copy" + std::to_string(i) + ": noise";
    f.uncertainty = i == 17 ? 0.99 : 0.01 * i;
    v.findings.push_back(f);
  }
  const auto text = report::verdict_text(v, {200, false});
  EXPECT_THAT(
      text, HasSubstr("INFO  medians of 30 metrics are uncertain (--json: each); the worst: memory/copy17:"));
  EXPECT_LT(lines_of(text).size(), 8U);
}

TEST(Report, ColorOnlyWhenAsked) {
  const auto r = healthy();
  EXPECT_THAT(report::summary(r, judge(r), "run.h5", {80, true}), HasSubstr("\x1b[32mPASS\x1b[0m (exit 0)"));
}

TEST(Report, SummaryStaysShortForManyCasesNodesAndFindings) {
  auto r = cluster(1000);
  const auto devices = rows_of_kind(r, "device");
  for (int i = 0; i < 40; ++i) {
    std::vector<double> values(devices.size(), 1e11);
    values[static_cast<std::size_t>(i)] = 1e10;
    add_case(r, "gemm", "a-very-long-case-name-that-does-not-fit-n" + std::to_string(i), "throughput",
             "FLOP/s", results::Better::higher, "device", devices, values);
  }
  const auto v = judge(r);
  const auto text = report::summary(
      r, v, "/a/very/long/path/that/must/stay/in/one/piece/so/that/it/can/be/copied/run-of-today.h5", {});
  expect_width(text, 80);
  EXPECT_LT(lines_of(text).size(), 70U);
  EXPECT_THAT(text, HasSubstr("+34 more: assay inspect FILE"));
  EXPECT_THAT(text, HasSubstr("+30 more: assay verdict FILE"));
  EXPECT_THAT(text, HasSubstr("INCONCLUSIVE  self-test of the gemm checker is missing"));
  EXPECT_THAT(
      text,
      HasSubstr("/a/very/long/path/that/must/stay/in/one/piece/so/that/it/can/be/copied/run-of-today.h5\n"));
}

TEST(Report, UnmeasuredCaseSaysWhy) {
  auto r = healthy();
  first_case(r).state = results::CaseState::error;
  first_case(r).reason = "MPI_Send failed";
  const auto text = report::summary(r, judge(r), "run.h5", {});
  EXPECT_THAT(text, HasSubstr("error: MPI_Send failed"));
  EXPECT_THAT(text, HasSubstr("INCONCLUSIVE (exit 3)"));
  expect_width(text, 80);
}

TEST(Report, VerdictTextTellsEverything) {
  const auto r = slow_run(8);
  const auto text = report::verdict_text(judge(r), {});
  expect_width(text, 80);
  EXPECT_THAT(text, HasSubstr("node3/cores0-1"));
  EXPECT_THAT(text, HasSubstr("WARN (exit 0)"));
}

results::Finding deficit(const char* severity, const char* reference, double by, const char* name = "n0/gpu0",
                         const char* metric = "gemm/a:throughput") {
  results::Finding f;
  f.severity = severity;
  f.kind = std::string(reference) == "history" ? "drift" : "slow";
  f.level = "device";
  f.name = name;
  f.suite = "gemm";
  f.metric = metric;
  f.reference_kind = reference;
  f.deficit = by;
  f.text = f.name + " by " + reference + "; next: test it alone";
  return f;
}

TEST(Report, WhatReferencesSayOfOnePartIsToldOnce) {
  auto drift = deficit("WARN", "history", 0.102, "n0/gpu0", "gemm/b:throughput");
  drift.since = "2026-11-24T02:00:00Z";
  const std::vector<results::Finding> findings{
      deficit("FAIL", "baseline", 0.11), deficit("FAIL", "peers", 0.1), drift,
      deficit("WARN", "peers", 0.04, "n1/gpu0"), deficit("INFO", "baseline", 0.03, "n1/gpu0")};
  const auto told = report::told_findings(findings);
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(
      told[0].text,
      "n0/gpu0 by peers; also 11.0 % behind the baseline, 10.2 % behind its own history in b:throughput "
      "since 2026-11-24T02:00:00Z; next: test it alone");
  EXPECT_EQ(told[1].text, "n1/gpu0 by peers; next: test it alone");
  // A warning never hides a failure; two limits of one part stay two.
  const std::vector<results::Finding> limits{deficit("WARN", "limit", 0.02), deficit("FAIL", "history", 0.1),
                                             deficit("WARN", "limit", 0.01)};
  const auto fails = report::told_findings(limits);
  ASSERT_EQ(fails.size(), 1U);
  EXPECT_EQ(fails[0].finding->severity, "FAIL");
  EXPECT_EQ(report::told_findings({limits[0], limits[2]}).size(), 2U);
}

TEST(Report, InspectListsCasesAndMetrics) {
  auto r = healthy();
  r.events.push_back({1.5, 1, "launch-warn", "node0: 2 of 4 cores", "uncovered"});
  const auto text = report::inspect_text(r, "run.h5", {});
  expect_width(text, 80);
  EXPECT_THAT(text, HasSubstr("gemm/fp32-n2048-together: pass, required"));
  EXPECT_THAT(text, HasSubstr("throughput"));
  EXPECT_THAT(text, HasSubstr("n=24"));
  EXPECT_THAT(text, HasSubstr("selftest       gemm: injected 1 caught 1"));
  EXPECT_THAT(text, HasSubstr("event 1.5 s node0 launch-warn"));
}

TEST(Report, InspectCountsRetestsApartAndNamesInfiniteParts) {
  auto r = healthy();
  const auto cases = std::to_string(r.cases.size());
  r.cases.push_back(first_case(r));
  r.cases.back().name += ".c1";
  auto& m = first_case(r).metrics.front();
  const std::size_t samples = first_case(r).samples();
  for (std::size_t s = 0; s < samples; ++s) m.values[2 * samples + s] = HUGE_VAL;
  results::Metric plain = m;
  plain.name = "what_it_is";
  plain.better = results::Better::none;
  plain.values.assign(plain.values.size(), 1);
  first_case(r).metrics.push_back(plain);
  constexpr double none = results::not_taken;
  for (const auto& [before, after] :
       {std::pair(none, none), std::pair(1.0, none), std::pair(1.0, 2.0), std::pair(2.0, 2.0)})
    r.counters.push_back({first_case(r).path(), 1, "c", before, after});
  r.selftest.push_back(r.selftest.front());
  const auto text = report::inspect_text(r, "run.h5", {});
  EXPECT_THAT(text, HasSubstr("cases          " + cases + " of "));
  EXPECT_THAT(text, HasSubstr(", 1 measured again"));
  EXPECT_THAT(text, HasSubstr("1 changed, 1 unreadable, 1 unsupported"));
  EXPECT_THAT(text, HasSubstr("selftest       gemm: injected 2 caught 2"));
  EXPECT_THAT(text, HasSubstr("\n    infinite values: node2/cores0-1\n"));
  // Half of the samples of all: so are the medians.
  auto& all = first_case(r).metrics.front().values;
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i % 2 == 0 ? HUGE_VAL : 1e11;
  const auto table = report::table_text(r, judge(r), {});
  EXPECT_THAT(table, HasSubstr("        infinite"));
  for (const auto& shown : {report::inspect_text(r, "run.h5", {}), table})
    EXPECT_THAT(shown, Not(testing::ContainsRegex("inf( |%)")));
  EXPECT_THAT(text, HasSubstr("  what_it_is                     1 FLOP/s    0.0%  n=24       \n"));
}

TEST(Report, TableHasOneRowPerPart) {
  const auto r = healthy(3);
  const auto text = report::table_text(r, judge(r), {});
  std::size_t rows = 0;
  for (const auto& line : lines_of(text)) {
    rows += line.rfind("node ", 0) == 0 || line.rfind("device ", 0) == 0 || line.rfind("numa ", 0) == 0 ||
                    line.rfind("nic ", 0) == 0
                ? 1U
                : 0U;
  }
  EXPECT_EQ(rows, 15U);  // 12 parts, and 3 devices with their rates
  EXPECT_THAT(text, HasSubstr("[1] gemm/fp32-n2048-together:throughput"));
  EXPECT_THAT(text, HasSubstr("NOT_TESTED"));
}

TEST(Report, TableOfManyMetricsAndLongReasonsFitsAPage) {
  auto r = healthy(64, 2);
  for (int i = 0; i < 7; ++i) {
    r.cases.push_back(first_case(r));
    r.cases.back().name = "fp64-n16384-a-rather-long-name-of-a-case-together-" + std::to_string(i);
  }
  auto v = judge(r);
  for (auto& e : v.entities) e.reason = "a reason that takes more than the rest of the line beside its part";
  for (const int width : {80, 120}) {
    const auto text = report::table_text(r, v, {width, false});
    expect_width(text, static_cast<std::size_t>(width));
    EXPECT_THAT(text, HasSubstr("[8] gemm/fp64-n16384-a-rather-long-name-of-a-case-together-6:throughput"));
    EXPECT_THAT(text, HasSubstr("node63/cores2-3"));
  }
}

TEST(Report, JsonNamesEverything) {
  const auto r = slow_run(8);
  const auto json = Json::parse(report::verdict_json(r, judge(r)));
  EXPECT_EQ(json["state"], "WARN");
  EXPECT_EQ(json["findings"][0]["name"], "node3/cores0-1");
  EXPECT_TRUE(json["findings"][0]["p_adjusted"].is_number());
  EXPECT_EQ(json["entities"].size(), 32U);
  EXPECT_EQ(json["entities"][0]["name"], "node0");
  EXPECT_EQ(json["run"]["run_id"], "test");
}

TEST(Report, JunitEscapesAndAccuses) {
  auto r = healthy();
  first_case(r).state = results::CaseState::fail;
  r.entities[static_cast<std::size_t>(row_named(r, "node2/cores0-1"))].name = "node2/<&\"'\x01\xff>";
  r.errors.push_back({"gemm/fp32-n2048-together", first_case(r).entity[2], 1, 2, 3, 4, 0});
  const auto xml = report::verdict_junit(r, judge(r));
  EXPECT_THAT(xml, HasSubstr("node2/&lt;&amp;&quot;&apos;?\xEF\xBF\xBD&gt;"));
  EXPECT_THAT(xml,
              HasSubstr("<testsuite name=\"gemm\" tests=\"4\" failures=\"1\" errors=\"0\" skipped=\"0\">"));
  EXPECT_THAT(xml, HasSubstr("<failure type=\"corrupt\""));
}

TEST(Report, InconclusiveRunIsNotGreenInJunit) {
  auto r = healthy();
  plan_only(r, "gemm", "never", true);
  EXPECT_THAT(report::verdict_junit(r, judge(r)),
              HasSubstr("<testcase classname=\"run\" name=\"verdict\"><error message="));
}

TEST(Report, NodesOneLineEach) {
  const auto r = slow_run(8);
  const auto lines = lines_of(report::nodes_text(r, judge(r)));
  ASSERT_EQ(lines.size(), 8U);
  EXPECT_EQ(lines[0], "node0 PASS");
  EXPECT_THAT(lines[3], HasSubstr("node3 WARN node3/cores0-1: "));
}

TEST(Report, PrometheusHasOneSeriesPerPart) {
  auto r = slow_run(8);
  r.info.started = "2026-01-31T04:05:06Z";
  const auto text = report::verdict_prometheus(r, judge(r));
  EXPECT_THAT(text, HasSubstr("# TYPE assay_median_throughput_flop_per_second gauge\n"));
  EXPECT_THAT(text, HasSubstr("\nassay_median_throughput_flop_per_second{node=\"node3\",device=\"cores0-1\","
                              "suite=\"gemm\",case=\"fp32-n2048-together\"} "));
  EXPECT_THAT(text, HasSubstr("\nassay_node_state{node=\"node3\",state=\"WARN\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nassay_node_state{node=\"node3\",state=\"PASS\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("\nassay_device_state{node=\"node3\",device=\"cores0-1\",state=\"WARN\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nassay_findings{severity=\"WARN\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nassay_run_started_timestamp_seconds 1769832306\n"));
  EXPECT_THAT(text, Not(HasSubstr("assay_run_ended_timestamp_seconds")));
  const auto lines = lines_of(text);
  EXPECT_EQ(std::set<std::string>(lines.begin(), lines.end()).size(), lines.size());
}

TEST(Report, PrometheusCountsALinkForBothEndsAndLeavesRetestsOut) {
  auto r = healthy(2);
  const auto devices = rows_of_kind(r, "device");
  auto& links =
      add_case(r, "p2p", "latency-8", "latency", "s", results::Better::lower, "link", {-1, -1}, {2e-6, 4e-6});
  links.source = {devices[0], devices[1]};
  links.destination = {devices[1], devices[0]};
  for (auto& value : links.metrics[0].values) value = value < 3e-6 ? 2e-6 : 4e-6;
  add_case(r, "gemm", "only.c1", "throughput", "FLOP/s", results::Better::higher, "device", devices, {1, 1});
  const auto text = report::verdict_prometheus(r, judge(r));
  for (const char* node : {"node0", "node1"})
    EXPECT_THAT(text, HasSubstr(std::string("assay_median_latency_seconds{node=\"") + node +
                                "\",device=\"cores0-1\",suite=\"p2p\",case=\"latency-8\"} 3e-06\n"));
  EXPECT_THAT(text, Not(HasSubstr("only")));
}

TEST(Report, PrometheusOfManyPartsTellsStatesAndTheWorst) {
  const auto text = report::verdict_prometheus(slow_run(1200), judge(slow_run(1200)));
  const auto count = [&](const std::string& name) {
    const auto lines = lines_of(text);
    return std::count_if(lines.begin(), lines.end(),
                         [&](const std::string& line) { return line.starts_with(name + "{"); });
  };
  EXPECT_EQ(count("assay_node_state"), 1200);
  EXPECT_THAT(text, Not(HasSubstr("assay_node_state{node=\"node3\",state=\"PASS\"}")));
  EXPECT_EQ(count("assay_median_throughput_flop_per_second"), 10);
  EXPECT_THAT(text, HasSubstr("\nassay_median_throughput_flop_per_second{node=\"node3\","));  // the slow one
  EXPECT_THAT(text, HasSubstr("\nassay_medians_left_out 1\n"));
  EXPECT_THAT(report::verdict_prometheus(slow_run(8), judge(slow_run(8))), Not(HasSubstr("left_out")));
}

TEST(Report, PrometheusKeepsToTheFormatWhateverNamesHold) {
  auto r = healthy(2);
  r.entities[static_cast<std::size_t>(row_named(r, "node1"))].name = "no\"de\\\n\xff";
  r.entities[static_cast<std::size_t>(row_named(r, "node1/cores0-1"))].name = "node0/cores0-1";
  first_case(r).metrics[0].name = "Rate of\nall_total";
  first_case(r).metrics[0].unit = "count";
  const auto text = report::verdict_prometheus(r, judge(r));
  EXPECT_THAT(text, HasSubstr("{node=\"no\\\"de\\\\\\n\xEF\xBF\xBD\",state=\"PASS\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE assay_median_rate_of_all_total_value gauge\n"));
}

}  // namespace
}  // namespace assay
