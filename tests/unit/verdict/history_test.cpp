// SPDX-License-Identifier: Apache-2.0
#include "verdict/history.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/error.hpp"
#include "history_rig.hpp"
#include "simulate/simulate.hpp"
#include "verdict/baseline.hpp"
#include "verdict/history_index.hpp"
#include "verdict/references.hpp"

namespace assay {
namespace {

using history_rig::drifts;
using history_rig::Fleet;
using history_rig::judged;
using testing::HasSubstr;

/// Metrics that a finding speaks of: its own, and those that it names besides.
int metrics_of(const results::Finding& f) {
  const std::string mark = "and so in ";
  const auto at = f.text.find(mark);
  return at == std::string::npos ? 1 : 1 + std::stoi(f.text.substr(at + mark.size()));
}

TEST(History, FindsTwoPercentChangeAfterThreeRuns) {
  const int runs = nightly() ? 400 : 40, nodes = 64, metrics = 6;
  for (const double c_r : {0.001, 0.002}) {
    int found = 0, false_alerts = 0;
    for (int r = 0; r < runs; ++r) {
      Fleet fleet(nodes, metrics, c_r, static_cast<std::uint64_t>(r));
      const auto earlier = fleet.days(3);
      const auto healthy = judged(fleet.run(3), earlier);
      std::vector<std::string> names;
      for (const auto& f : drifts(healthy)) names.push_back(f.name);
      std::sort(names.begin(), names.end());
      false_alerts += static_cast<int>(std::unique(names.begin(), names.end()) - names.begin());
      int own = 0;
      for (const auto& f : drifts(judged(fleet.run(3, 0.02), earlier)))
        own += f.name.starts_with("node5/") ? metrics_of(f) : 0;
      found += own;
    }
    const double recall = static_cast<double>(found) / (runs * metrics);
    const double per_thousand = 1000.0 * false_alerts / (runs * nodes);
    RecordProperty("recall_" + std::to_string(c_r), std::to_string(recall));
    RecordProperty("alerts_per_1000_" + std::to_string(c_r), std::to_string(per_thousand));
    EXPECT_GE(recall, 0.95) << c_r;
    EXPECT_LE(per_thousand, 5) << c_r;
  }
}

TEST(History, FailsWhenTheRunBeforeWasSlowToo) {
  Fleet fleet(16, 2, 0.001, 1);
  const auto first = judged(fleet.run(6, 0.12), fleet.days(6));
  ASSERT_EQ(drifts(first).size(), 1U);  // one finding for a part, whatever the number of metrics
  EXPECT_EQ(metrics_of(drifts(first)[0]), 2);
  EXPECT_EQ(drifts(first)[0].severity, "WARN");
  EXPECT_EQ(drifts(first)[0].reference_kind, "history");
  EXPECT_EQ(drifts(first)[0].claim, "abnormality");
  EXPECT_EQ(drifts(first)[0].since, "2026-01-07T00:00:00Z");
  Fleet again(16, 2, 0.001, 1);
  const auto earlier = again.days(6, 4, 0.12);  // slow on days 4 and 5
  auto slow = again.run(6, 0.12);
  const auto second = judged(slow, earlier);
  ASSERT_EQ(drifts(second).size(), 1U);
  EXPECT_EQ(drifts(second)[0].severity, "FAIL");
  EXPECT_EQ(drifts(second)[0].confirmed_by, "blocks");
  for (auto& c : slow.cases) c.t.assign(c.t.size(), 0.0);  // too short to have lasted
  EXPECT_EQ(drifts(judged(slow, earlier)).at(0).confirmed_by, "runs");
  EXPECT_EQ(drifts(second)[0].since, "2026-01-05T00:00:00Z");
  EXPECT_THAT(drifts(second)[0].text, HasSubstr("3 runs in a row"));
  EXPECT_EQ(second.state, "FAIL");
  EXPECT_NEAR(*drifts(second)[0].deficit, 0.12, 0.01);
  // The same, but too small for a fault of this class: only a warning.
  Fleet small(16, 2, 0.001, 1);
  const auto little = drifts(judged(small.run(6, 0.03), small.days(6, 4, 0.03)));
  ASSERT_FALSE(little.empty());
  for (const auto& f : little) EXPECT_EQ(f.severity, "WARN");
  // The run before is a measurement of its own: it confirms without blocks over a minute.
  Fleet hasty(16, 2, 0.001, 1);
  const auto before = hasty.days(6, 4, 0.12);
  auto now = hasty.run(6, 0.12);
  for (auto& c : now.cases) c.t.assign(c.t.size(), 0.0);
  EXPECT_EQ(drifts(judged(now, before)).at(0).severity, "FAIL");
}

/// A fault that lasts is told every night, from the second on as a fault, however long it has been in the
/// history.
TEST(History, LastingFaultIsReportedInEveryRun) {
  struct {
    int nodes, metrics;
  } const shapes[] = {{16, 30}, {64, 3}, {8, 3}};
  for (const auto& shape : shapes) {
    Fleet fleet(shape.nodes, shape.metrics, 0.001, 7);
    auto runs = fleet.days(6);
    std::string since;
    for (int night = 0; night < 24; ++night) {
      const auto r = fleet.run(6 + night, 0.12);
      const auto found = drifts(judged(r, runs));
      ASSERT_EQ(found.size(), 1U) << shape.nodes << " night " << night;
      EXPECT_TRUE(found[0].name.starts_with("node5/"));
      EXPECT_EQ(found[0].severity, night == 0 ? "WARN" : "FAIL")
          << shape.nodes << " night " << night << found[0].text;
      EXPECT_EQ(found[0].since, "2026-01-07T00:00:00Z");
      EXPECT_THAT(found[0].text, HasSubstr("threshold "));
      runs->push_back(verdict::snapshot_of(r, "night" + std::to_string(night)));
    }
    // Mended, it is silent.
    EXPECT_TRUE(drifts(judged(fleet.run(30), runs)).empty());
  }
}

TEST(History, ALimitThatNamesThePartAcceptsIt) {
  Fleet fleet(16, 2, 0.001, 1);
  const auto earlier = fleet.days(6, 4, 0.12);
  const auto r = fleet.run(6, 0.12);
  auto options = verdict::options_from(r);
  options.earlier = earlier;
  options.history_name = "history";
  options.limits_name = "limits.toml";
  for (const char* device : {"node5/*", "*"}) {
    options.limits_text =
        std::string("[[limit]]\nmetric = \"gemm/*:throughput\"\nmin = \"50 GFLOP/s\"\ndevice = \"") + device +
        "\"\n";
    const auto found = drifts(verdict::judge(r, options));
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found[0].severity, std::string(device) == "*" ? "FAIL" : "INFO") << found[0].text;
  }
}

TEST(History, FreshDataConfirmOrTakeBack) {
  for (const double slow_again : {0.12, 0.0}) {
    Fleet fleet(16, 1, 0.001, 2);
    const auto earlier = fleet.days(6, 5, 0.12);
    fleet.drift_sigma = 0;
    auto now = fleet.run(6, 0.12);
    for (auto& c : now.cases) c.t.assign(c.t.size(), 0.0);
    auto again = fleet.run(6, slow_again).cases[0];
    again.name += ".c1";
    now.cases.push_back(again);
    const auto found = drifts(judged(now, earlier));
    EXPECT_EQ(!found.empty() && found[0].severity == "FAIL", slow_again > 0) << slow_again;
  }
}

/// It was WARN `drift` with a deficit of 0 %.
TEST(History, ADeficitThatTheRetestDidNotShowIsANoteUnlessItLasted) {
  for (const bool lasted : {false, true}) {
    Fleet fleet(16, 1, 0.001, 2);
    const auto earlier = fleet.days(6, 5, 0.12);
    fleet.drift_sigma = 0;
    auto now = fleet.run(6, 0.12);
    if (!lasted)
      for (auto& c : now.cases) c.t.assign(c.t.size(), 0.0);
    auto again = fleet.run(6).cases[0];
    again.name += ".c1";
    now.cases.push_back(again);
    std::vector<results::Finding> told;
    for (const auto& f : judged(now, earlier).findings)
      if (f.reference_kind == "history" && f.name.starts_with("node5/")) told.push_back(f);
    ASSERT_EQ(told.size(), 1U) << lasted;
    EXPECT_EQ(told[0].severity, lasted ? "FAIL" : "INFO") << told[0].text;
    EXPECT_EQ(told[0].kind, lasted ? "drift" : "intermittent");
    EXPECT_EQ(told[0].confirmed_by, lasted ? "blocks" : "");
    EXPECT_THAT(told[0].text, HasSubstr(lasted ? "not confirmed by the retest, but by 3 blocks over 60 s"
                                               : "not confirmed by the retest (screening: "));
  }
}

TEST(History, TakesTheDriftOfTheFleetOutAndTellsALargeOne) {
  Fleet fleet(16, 1, 0.001, 3);
  fleet.drift_sigma = 0.002;
  const auto earlier = fleet.days(6);
  EXPECT_TRUE(drifts(judged(fleet.run(6, 0, 0.015), earlier)).empty());
  const auto found = drifts(judged(fleet.run(6, 0, 0.06), earlier));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].level, "cluster");
  EXPECT_EQ(found[0].severity, "WARN");
  EXPECT_NEAR(*found[0].deficit, 0.06, 0.01);
}

/// After a library was replaced the metric has another key: one run is compared, not all six.
TEST(History, TheFleetIsComparedWithTheRunsThatHaveTheMetric) {
  Fleet fleet(16, 1, 0.001, 3);
  fleet.drift_sigma = 0.002;
  const auto earlier = fleet.days(6);
  for (std::size_t day = 0; day < 5; ++day)
    for (auto& s : (*earlier)[day].series) s.case_key = "of the old library";
  EXPECT_TRUE(drifts(judged(fleet.run(6, 0, 0.06), earlier)).empty());
  const auto found = drifts(judged(fleet.run(6, 0, 0.13), earlier));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found[0].text, HasSubstr("own history of 1 run,"));
}

TEST(History, ALossOfTheFleetIsToldEachNightWithItsDate) {
  for (const int healthy : {3, 9})
    for (const double loss : {0.10, 0.30}) {
      Fleet fleet(16, 1, 0.001, 3);
      fleet.drift_sigma = 0.002;
      auto earlier = fleet.days(healthy);
      std::string since;
      for (int night = healthy; night < healthy + 8; ++night) {
        const auto now = fleet.run(night, 0, loss);
        const auto found = drifts(judged(now, earlier));
        ASSERT_EQ(found.size(), 1U) << healthy << " " << loss << " " << night;
        EXPECT_EQ(found[0].level, "cluster");
        EXPECT_NEAR(*found[0].deficit, loss, 0.02);
        if (since.empty()) since = now.info.started;
        EXPECT_EQ(found[0].since, since);
        earlier->push_back(verdict::snapshot_of(now, "day" + std::to_string(night)));
      }
    }
}

TEST(History, WhatMostPartsLostIsNotToldOfAll) {
  Fleet fleet(16, 1, 0.001, 3);
  const auto earlier = fleet.days(6);
  auto now = fleet.run(6);
  auto& c = now.cases.front();
  const std::size_t width = c.samples();
  for (std::size_t i = 0; i < 9 * width; ++i) c.metrics[0].values[i] *= 0.92;
  const auto found = drifts(judged(now, earlier));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].members.size(), 9U) << found[0].text;
  EXPECT_NEAR(*found[0].deficit, 0.08, 0.01);
}

TEST(History, MatchesByIdentityNotByRow) {
  Fleet fleet(16, 1, 0.001, 4);
  const auto earlier = fleet.days(6);
  auto now = fleet.run(6, 0.05);
  // Another order of ranks: the rows of the case change places.
  auto& c = now.cases[0];
  const std::size_t width = c.samples(), last = c.entity.size() - 1;
  std::swap(c.entity[5], c.entity[last]);
  for (std::size_t s = 0; s < width; ++s)
    std::swap(c.metrics[0].values[5 * width + s], c.metrics[0].values[last * width + s]);
  const auto found = drifts(judged(now, earlier));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].name, "node5/cores0-1");
  // Another set of cores is another part.
  for (auto& e : now.entities)
    if (e.kind == "device") e.id += "-all";
  EXPECT_TRUE(drifts(judged(now, earlier)).empty());
}

TEST(History, LeavesOutTheRunItselfAndLaterOnes) {
  Fleet fleet(16, 1, 0.001, 5);
  const auto runs = fleet.days(8, 5, 0.05);
  Fleet same(16, 1, 0.001, 5);
  for (int d = 0; d < 5; ++d) same.run(d);
  const auto now = verdict::snapshot_of(same.run(5, 0.05), "now");
  const auto history = verdict::history_of(*runs, now, "h");
  EXPECT_EQ(history.runs.size(), 5U);
  EXPECT_EQ(history.runs.back().started, "2026-01-05T00:00:00Z");
}

TEST(History, TheStoredOneRepeatsTheVerdict) {
  Fleet fleet(16, 2, 0.001, 6);
  const auto earlier = fleet.days(6, 4, 0.12);
  auto now = fleet.run(6, 0.12);
  const auto first = judged(now, earlier);
  ASSERT_EQ(first.state, "FAIL");
  ASSERT_EQ(first.inputs["history"]["runs"].size(), 6U);
  now.verdict = first;
  now.verdict->inputs = Json::parse(first.inputs.dump());
  const auto second = verdict::judge(now, verdict::options_from(now));
  ASSERT_EQ(second.findings.size(), first.findings.size());
  for (std::size_t i = 0; i < first.findings.size(); ++i)
    EXPECT_EQ(second.findings[i].text, first.findings[i].text);
  EXPECT_EQ(second.state, first.state);
  EXPECT_EQ(second.inputs, first.inputs);
  // Without the values the run is not judged by halves.
  now.verdict.reset();
  now.config["history"] = "gone";
  const auto open = verdict::judge(now, verdict::options_from(now));
  EXPECT_TRUE(drifts(open).empty());
  EXPECT_THAT(all_reasons(open), HasSubstr("history gone:"));
}

TEST(History, ADamagedOneIsRefused) {
  Fleet fleet(16, 1, 0.001, 7);
  auto inputs = judged(fleet.run(6), fleet.days(6)).inputs;
  for (const char* field : {"base", "metric", "shifted"}) {
    auto bad = inputs["history"];
    bad["series"][0][field] = 3;
    EXPECT_THROW(verdict::history_from(bad), Error) << field;
  }
  auto bad = inputs["history"];
  bad["series"][0]["base"] = "AAA";
  EXPECT_THROW(verdict::history_from(bad), Error);
  bad["series"][0]["shifted"] =
      Json::array({Json{{"score", 999}, {"runs", 1}, {"alert", true}, {"base", 1.0}, {"since", ""}}});
  EXPECT_THROW(verdict::history_from(bad), Error);
}

TEST(History, TailOfNormalAndHeavyNoise) {
  Noise noise(11);
  std::vector<double> normal, heavy;
  for (int i = 0; i < 20000; ++i) {
    normal.push_back(noise.next());
    heavy.push_back(
        noise.next() /
        std::sqrt((std::pow(noise.next(), 2) + std::pow(noise.next(), 2) + std::pow(noise.next(), 2)) / 3));
  }
  EXPECT_NEAR(verdict::tail_quantile(normal, 1e-4), 3.719, 0.35);
  EXPECT_NEAR(verdict::tail_quantile(normal, 0.05), 1.645, 0.05);
  EXPECT_NEAR(verdict::tail_quantile(heavy, 1e-4), 22.2, 8);  // t with 3 degrees
}

TEST(HistoryIndex, HoldsWhatWasPutIn) {
  Fleet fleet(8, 3, 0.001, 8);
  std::vector<verdict::IndexedRun> runs;
  const auto days = fleet.days(3);
  days->front().left_out = {"node3 in gemm/fp32-n1024:throughput"};
  for (const auto& run : *days) runs.push_back({run.source.file, 10, 20, run});
  const std::string bytes = verdict::index_bytes(runs);
  const auto back = verdict::parse_index(bytes);
  ASSERT_EQ(back.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(back[i].file, runs[i].file);
    EXPECT_EQ(verdict::hash_of(back[i].run), runs[i].run.source.hash);
    EXPECT_EQ(back[i].run.series[0].log_rate, runs[i].run.series[0].log_rate);
    EXPECT_EQ(back[i].run.part(0).name, runs[i].run.part(0).name);
    EXPECT_EQ(back[i].run.left_out, runs[i].run.left_out);
  }
  // Every flipped byte and every cut is noticed.
  for (std::size_t at = 0; at < bytes.size(); at += 97) {
    std::string bad = bytes;
    bad[at] = static_cast<char>(bad[at] ^ 4);
    EXPECT_THROW(verdict::parse_index(bad), Error) << at;
    EXPECT_THROW(verdict::parse_index(bytes.substr(0, at)), Error) << at;
  }
}

TEST(HistoryIndex, ARunInTwoDirectoriesOfAListCountsOnce) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / ("assay-nights-" + std::to_string(::getpid()));
  Fleet fleet(8, 3, 0.001, 8);
  const auto days = fleet.days(4);
  const auto write = [&](const char* name, std::size_t from) {  // the days from this one on
    std::vector<verdict::IndexedRun> runs;
    for (std::size_t d = from; d < days->size(); ++d)
      runs.push_back({(*days)[d].source.file, 10, 20, (*days)[d]});
    fs::create_directories(folder / name);
    std::ofstream(folder / name / verdict::index_name, std::ios::binary) << verdict::index_bytes(runs);
  };
  write("month", 0);
  write("week", 2);
  const std::string month = (folder / "month").string(), week = (folder / "week").string();
  const auto runs = verdict::read_run_list(week + "," + month, verdict::IndexUse::read);
  ASSERT_EQ(runs.size(), 4U);
  for (std::size_t d = 0; d < runs.size(); ++d) EXPECT_EQ(runs[d].source.file, (*days)[d].source.file);
  // So they do of files.
  const std::string index = month + "/" + verdict::index_name;
  const auto references = verdict::References::load(index + "," + index, index + "," + index);
  EXPECT_EQ(references.earlier->size(), 4U);
  EXPECT_EQ(references.baseline->runs.size(), 4U);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace assay
