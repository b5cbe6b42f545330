// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "report/html/markup.hpp"
#include "report/html/sections.hpp"
#include "tests/unit/report/page_made.hpp"
#include "verdict/trend.hpp"

namespace assay {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

verdict::Options limit(const std::string& bound) {
  verdict::Options o;
  o.limits_name = "limits.toml";
  o.limits_text = "[[limit]]\nmetric = \"memory/triad-*:bandwidth\"\n" + bound + "\n";
  return o;
}

TEST(Markup, TextIsNeverMarkup) {
  EXPECT_EQ(report::escaped("<b a=\"1\" c='2'>&"), "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;");
  EXPECT_EQ(report::escaped(std::string("a\x01\x7f\xff", 4)), "a\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(report::fragment("node 1\"><x"), "node%201%22%3E%3Cx");
}

TEST(Thinning, KeepsTheQuantiles) {
  std::vector<double> values;
  for (int i = 0; i < 10000; ++i) values.push_back((i * 7919) % 10000);
  const auto thin = report::thinned(values, 101);
  ASSERT_EQ(thin.size(), 101U);
  EXPECT_EQ(thin.front(), 0);
  EXPECT_EQ(thin.back(), 9999);
  EXPECT_NEAR(thin[50], 5000, 1);
  EXPECT_NEAR(thin[5], 500, 1);
}

TEST(Contract, NamesTheWorstPartAndItsMargin) {
  const Made made(fleet(8, 0.7), limit("min = \"90 GB/s\""));
  const auto rows = verdict::contract_of(made.judgement);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].met, "no");
  EXPECT_EQ(rows[0].beyond, 1U);
  EXPECT_EQ(rows[0].parts, 8U);
  EXPECT_THAT(rows[0].worst, HasSubstr("node3/"));
  EXPECT_NEAR(rows[0].margin, 0.7 / 0.9 - 1, 0.01);
  EXPECT_EQ(rows[0].where, "limits.toml:1");
}

TEST(Contract, MetAndAbsent) {
  const Made good(fleet(8), limit("min = \"90 GB/s\""));
  const auto met = verdict::contract_of(good.judgement);
  ASSERT_EQ(met.size(), 1U);
  EXPECT_EQ(met[0].met, "yes");
  EXPECT_GT(met[0].margin, 0.1);
  auto options = limit("min = \"90 GB/s\"");
  options.limits_text += "[[limit]]\nmetric = \"gemm/*:throughput\"\nmin = \"1 TFLOP/s\"\n";
  const Made absent(fleet(8), options);
  const auto rows = verdict::contract_of(absent.judgement);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].met, "absent");
  EXPECT_TRUE(verdict::contract_of(Made(fleet(8)).judgement).empty());
}

/// Whether each bound is met, by what was promised.
std::map<std::string, std::string> met_by_promise(const results::Results& r, const verdict::Options& o) {
  const Made made(r, o);
  std::map<std::string, std::string> met;
  for (const auto& row : verdict::contract_of(made.judgement)) met[row.metric + " " + row.promised] = row.met;
  return met;
}

TEST(Contract, APartThatBreaksTheBoundsOfTwoMetricsMeetsNeither) {
  auto r = fleet(8, 0.7);
  auto copy = r.cases[0];
  copy.name = copy.case_key = "copy-together";
  r.plan.push_back(r.plan[0]);
  r.plan.back().name = copy.name;
  r.cases.push_back(copy);
  verdict::Options both = limit("min = \"90 GB/s\"");
  both.limits_text += "[[limit]]\nmetric = \"memory/copy-*:bandwidth\"\nmin = \"90 GB/s\"\n";
  const Made made(r, both);
  EXPECT_EQ(std::ranges::count(made.verdict.findings, "limit", &results::Finding::reference_kind), 1)
      << "what one suite says of a part is one finding";
  EXPECT_THAT(met_by_promise(r, both),
              testing::ElementsAre(testing::Pair("memory/copy-together:bandwidth min 90 GB/s", "no"),
                                   testing::Pair("memory/triad-together:bandwidth min 90 GB/s", "no")));
}

TEST(Contract, EqualBoundsOfSeveralPartsAreMetEachByItsOwn) {
  verdict::Options each = limit("min = \"90 GB/s\"\ndevice = \"node3*\"");
  each.limits_text += limit("min = \"90 GB/s\"\ndevice = \"node1*\"").limits_text;
  EXPECT_THAT(
      met_by_promise(fleet(8, 0.7), each),
      testing::ElementsAre(testing::Pair("memory/triad-together:bandwidth min 90 GB/s on node1*", "yes"),
                           testing::Pair("memory/triad-together:bandwidth min 90 GB/s on node3*", "no")));
}

TEST(Sensitivity, NoiseHidesAndPartsReveal) {
  const auto visible = [](int nodes) {
    const Made made(fleet(nodes));
    const auto rows = verdict::sensitivity_of(made.judgement);
    EXPECT_EQ(rows.size(), 1U);
    return rows.at(0).visible;
  };
  const double two = visible(2), three = visible(3), many = visible(64);
  EXPECT_GE(two, 0.30);  // of two only what is coarse is seen
  EXPECT_GE(three, 0.12);
  EXPECT_LT(three, 0.20);  // two that are alike tell more of the third
  EXPECT_GE(many, 0.012);  // never less than what is worth a warning
  EXPECT_LT(many, 0.03);   // and far less than what would FAIL
}

TEST(Sensitivity, AFaultIsNoSpreadOfTheHealthy) {
  const auto visible = [](double slow) {
    const Made made(fleet(24, slow));
    return verdict::sensitivity_of(made.judgement).at(0).visible;
  };
  EXPECT_NEAR(visible(0.7), visible(1), 0.02);
}

TEST(Page, WhatWasNotTestedIsNamedCaseByCaseAndPartByPart) {
  auto r = fleet(8);
  const auto add = [&](const char* name, results::CaseState state, const char* why) {
    fabricate::add_case(r, "gemm", name, "throughput", "FLOP/s", results::Better::higher, "device", {}, {}, 6,
                        false);
    r.cases.back().state = state;
    r.cases.back().reason = why;
  };
  add("fp32-skipped", results::CaseState::skip, "too little memory");
  add("fp32-broken", results::CaseState::error, "out of memory");
  for (const char* name : {"fp32-cut-off", "fp8-together"}) fabricate::plan_only(r, "gemm", name, false);
  r.plan.back().state = "not_applicable";
  r.plan.back().reason = "no FP8 here";
  r.entities.push_back({"nic", "nic-9", "path", "node1/eth9", 1, -1});
  const Made made(std::move(r));
  const std::string page = report::page_html(made.input());
  for (const char* row : {"fp32-skipped</td><td>skip</td><td></td><td class=\"wide\">too little memory",
                          "fp32-broken</td><td>error</td><td></td><td class=\"wide\">out of memory",
                          "fp32-cut-off</td><td>incomplete</td><td></td><td class=\"wide\">never ran",
                          "fp8-together</td><td>not applicable</td><td></td><td class=\"wide\">no FP8 here"})
    EXPECT_THAT(page, HasSubstr(std::string("<td class=\"wide\">gemm/") + row));
  EXPECT_THAT(page,
              HasSubstr("node1/eth9</a></td><td>nic</td><td class=\"nowrap\"><span class=\"chip none\">"));
}

TEST(Page, AFindingIsDrawnOverTheTimeOfTheRun) {
  auto r = fleet(8, 0.7);
  const auto slow = fabricate::row_named(r, "node3/cores0-1"),
             other = fabricate::row_named(r, "node1/cores0-1");
  r.flags.push_back({3, slow, "hw_thermal", 1});
  r.flags.push_back({5, slow, "hw_thermal", 0});
  r.flags.push_back({4, other, "sw_power", 1});
  r.counters.push_back({"memory/triad-together", slow, "ecc_corrected", 2, 7});
  r.events.push_back({6, slow, "link_down", "for a second"});
  const Made made(std::move(r));
  const std::string page = report::page_html(made.input());
  const Json data = data_of(page);
  ASSERT_FALSE(data["evidence"].empty());
  const Json& evidence = data["evidence"][0];
  EXPECT_EQ(evidence["first_at"].size(), 12U);
  const Json marks = Json::parse(R"([
    {"from": 0, "to": 11, "kind": "counter", "text": "node3/cores0-1 ecc_corrected +5"},
    {"from": 3, "to": 5, "kind": "flag", "text": "node3/cores0-1 hw_thermal"},
    {"from": 6, "to": 6, "kind": "event", "text": "node3/cores0-1 link_down: for a second"}])");
  EXPECT_EQ(evidence["marks"], marks);
  for (const char* drawn : {"class=\"mark-flag\"", "class=\"mark-event\"", "class=\"mark-counter\"",
                            "class=\"bound\"", "3 counters, events and flags"})
    EXPECT_THAT(page, HasSubstr(drawn));
}

TEST(Page, SweepShowsBoundAndEarlierRun) {
  const auto sized = [](double rate, const char* id) {
    auto r = fabricate::cluster(8);
    const auto rows = fabricate::rows_of_kind(r, "device");
    for (const int size : {1024, 4096, 16384}) {
      std::vector<double> values;
      for (std::size_t i = 0; i < rows.size(); ++i)
        values.push_back(rate * size * fabricate::wobble(i) * (i == 3 ? 0.6 : 1));
      fabricate::add_case(r, "memory", "copy-" + std::to_string(size) + "-together", "bandwidth", "B/s",
                          results::Better::higher, "device", rows, values, 12)
          .parameters["bytes"] = size;
    }
    r.info.run_id = id;
    return r;
  };
  auto options = limit("min = \"1 MB/s\"");
  // The bound of the fast side and that of one part are no bound of the line.
  options.limits_text =
      "[[limit]]\nmetric = \"memory/copy-4096-*:bandwidth\"\nmin = \"3 MB/s\"\nmax = \"9 GB/s\"\n"
      "[[limit]]\nmetric = \"memory/copy-16384-*:bandwidth\"\ndevice = \"node2*\"\nmin = \"1 MB/s\"\n";
  const Made made(sized(1e3, "now"), options);
  const auto before = verdict::snapshot_of(sized(2e3, "before"), "before.h5");
  auto input = made.input();
  input.previous = &before;
  const std::string page = report::page_html(input);
  const Json data = data_of(page);
  ASSERT_EQ(data["sweeps"].size(), 1U);
  const Json& sweep = data["sweeps"][0];
  EXPECT_EQ(sweep["sizes"], Json::array({1024, 4096, 16384}));
  EXPECT_EQ(sweep["bound_kind"], "contract");
  EXPECT_EQ(sweep["bound"], Json::array({nullptr, 3e6, nullptr}));
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_NEAR(sweep["previous"][i].get<double>(), 2 * sweep["median"][i].get<double>(),
                1e-3 * sweep["median"][i].get<double>());
  ASSERT_EQ(sweep["blamed"].size(), 1U);
  EXPECT_THAT(sweep["blamed"][0]["name"].get<std::string>(), HasSubstr("node3"));
  EXPECT_LT(sweep["blamed"][0]["values"][1].get<double>(), sweep["low"][1].get<double>());
  EXPECT_THAT(page, HasSubstr("dashed: contract; dotted: before.h5; red: node3"));
}

TEST(Page, TrainingIsToldStageByStageStepByStepAndRankByRank) {
  auto r = fleet(2);
  const auto rows = fabricate::rows_of_kind(r, "device");
  auto& c = fabricate::add_case(r, "train", "tiny-together", "throughput", "token/s", results::Better::higher,
                                "device", rows, std::vector<double>(rows.size(), 1e4), 10);
  const auto add = [&](const char* name, const char* unit, double first, double step) {
    results::Metric m{name, unit, results::Better::none, false, results::Role::metric, true, {}};
    for (std::size_t row = 0; row < rows.size(); ++row)
      for (int s = 0; s < 10; ++s) m.values.push_back(first + step * s);
    c.metrics.push_back(std::move(m));
  };
  c.metrics.front().judging.emplace();
  c.metrics.front().judging->of = results::MetricClass::step;
  c.metrics.front().judging->shared_by = results::SharedBy::world;
  add("loss", "nat", 3, -0.1);
  add("oracle", "nat", 1.5, 0);
  add("forward", "s", 0.004, 0);
  add("exposed", "s", 0.001, 0);
  const Made made(std::move(r));
  const std::string page = report::page_html(made.input());
  for (const char* there :
       {"loss of train/tiny-together by step, beside the entropy of the data",
        "<td class=\"num\">9</td><td class=\"num\">2.1 nat</td><td class=\"num\">1.5 nat</td>",
        "Time of a step by stage: forward 4 ms, exposed 1 ms, medians",
        "Throughput by rank of train/tiny-together"})
    EXPECT_THAT(page, HasSubstr(there));
}

TEST(Page, PartsOfTwoKindsAreToldGroupByGroup) {
  auto r = fleet(8);
  auto& table = r.inventory["device"];
  for (const auto row : fabricate::rows_of_kind(r, "device")) {
    table.entity.push_back(row);
    table.text["model"].push_back(table.entity.size() % 2 == 0 ? "A" : "B");
  }
  const Made made(std::move(r));
  const std::string page = report::page_html(made.input());
  for (const char* group : {"<td class=\"wide\">A x2</td>", "<td class=\"wide\">B x2</td>"})
    EXPECT_THAT(page,
                HasSubstr(std::string("<td class=\"wide\">memory/triad-together:bandwidth</td>") + group));
  EXPECT_THAT(report::page_html(Made(fleet(8)).input()), HasSubstr("No metric has more than one group"));
}

TEST(Page, LinksThatCarriedMessagesAreCountedAndTheOthersNamed) {
  auto r = fabricate::cluster(4);
  std::vector<std::int32_t> rows, from, to;
  for (const auto& [a, b] : {std::pair{"node0/eth0", "node1/eth0"}, std::pair{"node1/eth0", "node0/eth0"}}) {
    from.push_back(fabricate::row_named(r, a));
    to.push_back(fabricate::row_named(r, b));
    rows.push_back(static_cast<std::int32_t>(r.entities.size()));
    r.entities.push_back({"link", std::string(a) + b, "path", std::string(a) + ">" + b, 0, -1});
  }
  auto& c = fabricate::add_case(r, "p2p", "bandwidth-uni-1048576-cross-ucx-eth0", "bandwidth", "B/s",
                                results::Better::higher, "link", rows, {1e9, 1e9});
  c.source = from;
  c.destination = to;
  c.metrics.push_back(
      {"payload", "B", results::Better::none, false, results::Role::covariate, false, {100, 100}});
  const Made made(std::move(r));
  const std::string page = report::page_html(made.input());
  EXPECT_THAT(page, HasSubstr("Link coverage: what carried messages of this run"));
  EXPECT_THAT(page, HasSubstr("<td>pairs of nodes</td><td class=\"num\">1</td><td class=\"num\">6</td><td "
                              "class=\"num\">16.7 %</td>"));
}

TEST(Page, HostileTextsAreInert) {
  const std::string evil = "</script><img src=x onerror=alert(1)>\"'&";
  auto r = fleet(4);
  for (auto& e : r.entities) e.name += evil;
  for (auto* text : {&r.info.run_id, &r.info.command_line, &r.info.level, &r.info.started, &r.info.plan_hash})
    *text = evil;
  r.cases[0].reason = r.cases[0].case_key = evil;
  r.cases[0].metrics[0].unit = evil;
  r.events.push_back({1, 1, evil, evil});
  r.environment.push_back({evil, evil, evil});
  r.inventory["node"].entity = {1};
  r.inventory["node"].text[evil] = {evil};
  r.telemetry = {{1, 1, 1}, {0, 1, 2}, {{evil, {1, 2, 3}}}, {{evil, evil}}};
  r.selftest.push_back({evil, 1, 1, 1, 1, -1});
  const Made made(std::move(r));
  const std::string page = report::page_html(made.input());
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, Not(HasSubstr("</script><")));
  EXPECT_THAT(page, HasSubstr("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;"));
  EXPECT_THAT(report::page_markdown(made.input()), Not(HasSubstr(" <img")));
}

TEST(Page, EmptyResultsSayWhyNothingIsThere) {
  results::Results r;
  r.info.level = "smoke";
  const Made made(std::move(r));
  const std::string page = report::page_html(made.input());
  for (const char* why : {"No contract was given", "The file has no nodes", "No pairs were measured",
                          "No metric of this run was measured at three sizes", "No metric with a direction",
                          "Nothing was sampled over time", "No training case ran", "Only one run is given",
                          "One run was given", "holds no inventory"})
    EXPECT_THAT(page, HasSubstr(why));
}

std::vector<verdict::Snapshot> nights(int count, int step_at, double step) {
  std::vector<verdict::Snapshot> runs;
  for (int n = 0; n < count; ++n) {
    auto r = fabricate::cluster(8);
    const auto rows = fabricate::rows_of_kind(r, "device");
    std::vector<double> values;
    for (std::size_t i = 0; i < rows.size(); ++i)
      values.push_back(1e11 * fabricate::wobble(i * 3 + static_cast<std::size_t>(n) * 5, 0.004) *
                       (i == 2 && n >= step_at ? 1 - step : 1));
    fabricate::add_case(r, "memory", "triad-together", "bandwidth", "B/s", results::Better::higher, "device",
                        rows, values);
    r.info.run_id = "night" + std::to_string(n);
    r.info.started = "2026-01-" + std::to_string(10 + n) + "T00:00:00Z";
    runs.push_back(verdict::snapshot_of(r, r.info.run_id + ".h5"));
  }
  return runs;
}

TEST(Trend, DatesAChangeThatLasts) {
  const auto trend = verdict::trend_of(nights(12, 7, 0.08));
  ASSERT_EQ(trend.size(), 1U);
  ASSERT_EQ(trend[0].changes.size(), 1U);
  EXPECT_THAT(trend[0].changes[0].name, HasSubstr("node2/"));
  EXPECT_EQ(trend[0].changes[0].run, 7U);
  EXPECT_NEAR(trend[0].changes[0].change, -0.08, 0.01);
}

TEST(Trend, SeesNoChangeInNoise) {
  const auto trend = verdict::trend_of(nights(12, 99, 0));
  ASSERT_EQ(trend.size(), 1U);
  EXPECT_TRUE(trend[0].changes.empty());
  EXPECT_EQ(trend[0].points.size(), 12U);
}

TEST(Trend, SaysThatThereIsNoChangeOnlyWhereOneCouldBeFound) {
  const auto few = nights(4, 2, 0.5), enough = nights(5, 99, 0);
  const std::string none = "No lasting change of 2 %",
                    words = "4 runs: lasting changes are sought in metrics with 5 or more runs";
  EXPECT_THAT(report::trend_html(few, "nights"), AllOf(HasSubstr(words), Not(HasSubstr(none))));
  EXPECT_THAT(report::few_runs_words(few), HasSubstr(words));
  EXPECT_THAT(report::trend_html(enough, "nights"), AllOf(HasSubstr(none), Not(HasSubstr("looked for"))));
  EXPECT_EQ(report::few_runs_words(enough), "");
  // A change is found from as many runs on.
  EXPECT_EQ(verdict::trend_of(nights(5, 3, 0.5)).at(0).changes.size(), 1U);
}

TEST(Trend, TellsHowManyMetricsHaveTooFewRuns) {
  auto runs = nights(6, 99, 0);
  for (std::size_t n = 0; n < runs.size(); ++n)
    if (n < 2) {
      runs[n].series.push_back(runs[n].series.at(0));
      runs[n].series.back().metric = "latency";
    }
  EXPECT_THAT(report::trend_html(runs, "nights"),
              HasSubstr("1 of 2 metrics have fewer than 5 runs: none is looked for in them"));
  for (auto& run : runs)
    if (run.source.started > runs[3].source.started) run.series.clear();
  EXPECT_EQ(
      report::few_runs_words(runs),
      "6 runs, and no metric in as many of them: lasting changes are sought in metrics with 5 or more runs.");
}

}  // namespace
}  // namespace assay
