// SPDX-License-Identifier: Apache-2.0
// Histories with small runs, of parts that they do not know, of metrics that are no rates, and beside limits.
#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "history_rig.hpp"
#include "verdict/history.hpp"

namespace assay {
namespace {

using history_rig::drifts;
using history_rig::Fleet;
using history_rig::judged;

/// A limit whose pattern is that of a model, of all nodes, or of another side than the slow one says nothing
/// about a part.
TEST(HistoryParts, OnlyALimitThatNamesThePartAndBoundsItsSlowSideAcceptsIt) {
  Fleet fleet(16, 2, 0.001, 1);
  const auto earlier = fleet.days(6, 4, 0.12);
  auto r = fleet.run(6, 0.12);
  r.inventory["node"].entity = fabricate::rows_of_kind(r, "node");
  r.inventory["node"].text["cpu_model"] = std::vector<std::string>(16, "Model 9");
  auto options = verdict::options_from(r);
  options.earlier = earlier;
  options.history_name = "history";
  options.limits_name = "limits.toml";
  const std::string least = "min = \"50 GFLOP/s\"", most = "max = \"500 GFLOP/s\"";
  const struct {
    std::string device, bound, severity;
  } cases[] = {{"Model 9", least, "FAIL"},
               {"node*", least, "FAIL"},
               {"node5/*", most, "FAIL"},
               {"node5", least, "INFO"},
               {"node5/cores0-1", least, "INFO"}};
  for (const auto& c : cases) {
    options.limits_text =
        "[[limit]]\nmetric = \"gemm/*:throughput\"\n" + c.bound + "\ndevice = \"" + c.device + "\"\n";
    const auto found = drifts(verdict::judge(r, options));
    ASSERT_FALSE(found.empty()) << c.device;
    EXPECT_EQ(found[0].severity, c.severity) << c.device << " " << c.bound << found[0].text;
  }
}

/// Leaves the first node of the first case.
void test_one_node(results::Results& r) {
  auto& c = fabricate::first_case(r);
  c.metrics[0].values.resize(c.samples());
  c.t.resize(c.samples());
  c.entity.resize(1);
  c.count.resize(1);
}

TEST(HistoryParts, ASmallRunAmongLargeOnesHidesNoLossOfTheFleet) {
  for (const int small : {-1, 0, 4, 9}) {  // the day, if any
    Fleet fleet(16, 1, 0.001, 3);
    fleet.drift_sigma = 0.002;
    auto earlier = std::make_shared<std::vector<verdict::Snapshot>>();
    for (int day = 0; day < 10; ++day) {
      auto r = fleet.run(day);
      if (day == small) test_one_node(r);
      earlier->push_back(verdict::snapshot_of(r, "day" + std::to_string(day)));
    }
    EXPECT_TRUE(drifts(judged(fleet.run(10), earlier)).empty()) << small;
    const auto found = drifts(judged(fleet.run(10, 0, 0.06), earlier));
    ASSERT_EQ(found.size(), 1U) << small;
    EXPECT_EQ(found[0].level, "cluster");
    EXPECT_NEAR(*found[0].deficit, 0.06, 0.01);
  }
}

TEST(HistoryParts, PartsThatItDoesNotKnowAreCounted) {
  const auto note = [](const results::Results& r, const auto& earlier) -> std::string {
    const auto v = judged(r, earlier);
    const auto* f = fabricate::find_kind(v, "uncovered");
    return f == nullptr ? "" : f->severity + " " + f->text;
  };
  const auto rename = [](results::Results& r, int nodes) {
    for (auto& e : r.entities)
      for (int n = 0; n < nodes; ++n)
        if (e.name == "node" + std::to_string(n) || e.name.starts_with("node" + std::to_string(n) + "/"))
          e.id += "-new";
  };
  Fleet fleet(16, 2, 0.001, 1);
  const auto earlier = fleet.days(6);
  auto now = fleet.run(6);
  EXPECT_EQ(note(now, earlier), "");
  rename(now, 2);
  EXPECT_EQ(note(now, earlier), "INFO history history: 2 of 16 parts are in none of its runs");
  now = fleet.run(6);
  rename(now, 16);
  EXPECT_EQ(note(now, earlier), "INFO history history: 16 of 16 parts are in none of its runs");
}

TEST(HistoryParts, RunsWithInjectedFaultsAreNoPastOfOthers) {
  Fleet fleet(16, 2, 0.001, 1);
  const auto earlier = fleet.days(6, 4, 0.12);
  for (std::size_t day = 4; day < 6; ++day) (*earlier)[day].injected = true;
  auto now = fleet.run(6, 0.12);
  const auto v = judged(now, earlier);
  EXPECT_EQ(v.inputs["history"]["runs"].size(), 4U);
  const auto severity = [](const results::VerdictData& verdict) {
    for (const auto& f : drifts(verdict))
      if (f.name.starts_with("node5/")) return f.severity;
    return std::string();
  };
  EXPECT_EQ(severity(v), "WARN") << "slow for the first time";
  const auto* note = fabricate::find_kind(v, "uncovered");
  ASSERT_NE(note, nullptr);
  EXPECT_EQ(note->severity + " " + note->text,
            "INFO history history: left out, since faults were injected: day4, day5");
  EXPECT_EQ(verdict::history_from(v.inputs["history"]).injected, (std::vector<std::string>{"day4", "day5"}));
  // A rehearsal is held against the nights of the rehearsal.
  now.info.injected = true;
  EXPECT_EQ(severity(judged(now, earlier)), "FAIL");
}

/// A shorter night tests less of the memory, at the same rate.
TEST(HistoryParts, WhatAPatternCoversIsNoRate) {
  const auto with_coverage = [](results::Results r, double covered) {
    const auto rows = fabricate::rows_of_kind(r, "device");
    fabricate::add_case(r, "memory", "march-c", "coverage", "1", results::Better::higher, "device", rows,
                        std::vector<double>(rows.size(), covered), 1);
    fabricate::add_selftest(r, "memory");
    return r;
  };
  Fleet fleet(16, 1, 0.001, 1);
  auto earlier = std::make_shared<std::vector<verdict::Snapshot>>();
  for (int day = 0; day < 10; ++day)
    earlier->push_back(verdict::snapshot_of(with_coverage(fleet.run(day), 0.9), "day"));
  const auto v = judged(with_coverage(fleet.run(10), 0.6), earlier);
  EXPECT_TRUE(drifts(v).empty()) << drifts(v)[0].text;
}

/// A night of collectives inside nodes of four ranks each; `slow` has lost a share of its rate.
results::Results in_node_night(int day, int slow = -1, double lost = 0, int samples = 6) {
  auto r = fabricate::cluster(64, 4);
  r.info.started = "2026-01-0" + std::to_string(day) + "T00:00:00Z";
  r.info.run_id = "run " + std::to_string(day);
  const auto devices = fabricate::rows_of_kind(r, "device");
  std::vector<double> values;
  for (std::size_t i = 0; i < devices.size(); ++i)
    values.push_back(static_cast<int>(i / 4) == slow ? 1e11 * (1 - lost) : 1e11);
  auto& c = fabricate::add_case(r, "allreduce", "allreduce-1048576-node", "busbw", "B/s",
                                results::Better::higher, "device", devices, values, samples);
  results::Judging judging;
  judging.of = results::MetricClass::collective;
  judging.shared_by = results::SharedBy::node;
  c.metrics[0].judging = judging;
  fabricate::add_selftest(r, "allreduce");
  return r;
}

TEST(HistoryParts, ALossInsideOneOfManyNodesIsToldOfThatNode) {
  auto earlier = std::make_shared<std::vector<verdict::Snapshot>>();
  for (int day = 1; day <= 4; ++day) earlier->push_back(verdict::snapshot_of(in_node_night(day), "day"));
  EXPECT_TRUE(drifts(judged(in_node_night(5), earlier)).empty());
  EXPECT_TRUE(drifts(judged(in_node_night(5, 9, 0.2), earlier)).empty());
  auto now = in_node_night(5, 9, 0.6);
  const auto first = judged(now, earlier);
  auto found = drifts(first);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].level, "node");
  EXPECT_EQ(found[0].name, "node9");
  EXPECT_EQ(found[0].severity, "WARN");
  EXPECT_NEAR(*found[0].deficit, 0.6, 0.01);
  EXPECT_THAT(found[0].since, testing::HasSubstr("-05T"));
  // It goes on, and has begun when it did.
  earlier->push_back(verdict::snapshot_of(now, "day"));
  found = drifts(judged(in_node_night(6, 9, 0.6), earlier));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found[0].since, testing::HasSubstr("-05T"));
  now.verdict = first;
  now.verdict->inputs = Json::parse(first.inputs.dump());
  const auto second = verdict::judge(now, verdict::options_from(now));
  EXPECT_EQ(drifts(second).at(0).text, drifts(first).at(0).text);
  EXPECT_EQ(second.inputs, first.inputs);
}

/// One sample that was held up was a WARN, and far below its past INCONCLUSIVE.
TEST(HistoryParts, FewSamplesOfANodeAreANote) {
  auto earlier = std::make_shared<std::vector<verdict::Snapshot>>();
  for (int day = 1; day <= 4; ++day) earlier->push_back(verdict::snapshot_of(in_node_night(day), "day"));
  for (const double lost : {0.6, 0.95})
    for (const int samples : {1, 4, 5}) {
      const auto v = judged(in_node_night(5, 9, lost, samples), earlier);
      const auto found = drifts(v);
      ASSERT_EQ(found.size(), 1U) << samples;
      EXPECT_EQ(found[0].severity, samples < 5 ? "INFO" : "WARN");
      EXPECT_EQ(found[0].text.find("too few samples") != std::string::npos, samples < 5);
      EXPECT_EQ(v.state == "INCONCLUSIVE", samples == 5 && lost > 0.9) << samples << " " << lost;
    }
}

TEST(HistoryParts, OtherRanksOfANodeAreAnotherCollective) {
  auto earlier = std::make_shared<std::vector<verdict::Snapshot>>();
  for (int day = 1; day <= 4; ++day) earlier->push_back(verdict::snapshot_of(in_node_night(day), "day"));
  auto now = in_node_night(5, 9, 0.6);
  for (auto& e : now.entities)
    if (e.name == "node9/cores0-1") e.id += "-new";
  EXPECT_TRUE(drifts(judged(now, earlier)).empty());
}

TEST(HistoryParts, ADamagedHistoryOfNodesIsRefused) {
  auto earlier = std::make_shared<std::vector<verdict::Snapshot>>();
  for (int day = 1; day <= 4; ++day) earlier->push_back(verdict::snapshot_of(in_node_night(day), "day"));
  const auto inputs = judged(in_node_night(5), earlier).inputs;
  ASSERT_EQ(inputs["history"]["node_totals"].size(), 1U);
  for (const char* field : {"node", "base", "since"}) {
    auto bad = inputs["history"];
    bad["node_totals"][0][field] = field[0] == 'b' ? Json("AAAAAAAAAAA=") : Json(3);
    EXPECT_THROW(verdict::history_from(bad), Error) << field;
  }
}

}  // namespace
}  // namespace assay
