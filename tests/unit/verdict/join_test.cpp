// SPDX-License-Identifier: Apache-2.0
// Verdicts of several files as one: nothing that a file says is lost, and nothing is said for each file.
#include "verdict/join.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/unit/fabricate.hpp"

namespace assay {
namespace {

using namespace fabricate;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

results::Finding fact(const std::string& text, const std::string& severity = "WARN",
                      const std::string& metric = "") {
  results::Finding f;
  f.level = f.name = "cluster";
  f.kind = "mismatch";
  f.severity = severity;
  f.metric = metric;
  f.text = text;
  return f;
}

/// The texts, by severity, of files with these findings.
std::vector<std::string> joined(const std::vector<std::vector<results::Finding>>& files) {
  verdict::Join join;
  auto r = healthy();
  for (std::size_t i = 0; i < files.size(); ++i) {
    r.info.run_id = "run" + std::to_string(i);
    results::VerdictData v;
    v.state = "WARN";
    v.findings = files[i];
    for (const auto& f : v.findings) v.reasons.push_back(f.text);
    join.add("seg" + std::to_string(i) + ".h5", r, v);
  }
  std::vector<std::string> texts;
  for (const auto& f : join.verdict(false).findings) texts.push_back(f.text);
  return texts;
}

TEST(VerdictJoin, DifferentFactsOfOneKindAreAllTold) {
  EXPECT_THAT(
      joined({{fact("oversubscribed"), fact("other library")}}),
      ElementsAre("oversubscribed (in 1 of 1 file: seg0.h5)", "other library (in 1 of 1 file: seg0.h5)"));
  // Whatever their order and number in each file.
  EXPECT_THAT(joined({{fact("oversubscribed")},
                      {fact("other library"), fact("oversubscribed")},
                      {fact("case gemm-512 was skipped"), fact("case gemm-1024 was skipped")}}),
              ElementsAre("oversubscribed (in 2 of 3 files: seg0.h5, seg1.h5)",
                          "other library (in 1 of 3 files: seg1.h5)",
                          "case gemm-512 was skipped (in 1 of 3 files: seg2.h5)",
                          "case gemm-1024 was skipped (in 1 of 3 files: seg2.h5)"));
}

TEST(VerdictJoin, AFactThatDiffersInItsNumbersOnlyIsToldOnceForAllFiles) {
  EXPECT_THAT(
      joined({{fact("12.5 % of 30 samples")}, {fact("9 % of 1,234 samples")}, {fact("8 % of 30 samples")}}),
      ElementsAre(StartsWith("12.5 % of 30 samples (in 3 of 3 files: ")));
  // Twice in one file it is two facts.
  EXPECT_THAT(joined({{fact("1 of 2"), fact("3 of 4")}, {fact("1 of 2"), fact("3 of 4")}}),
              ElementsAre("1 of 2 (in 2 of 2 files: seg0.h5, seg1.h5)",
                          "3 of 4 (in 2 of 2 files: seg0.h5, seg1.h5)"));
  // The worst one's words stay, and a metric is one finding whatever the words.
  EXPECT_THAT(joined({{fact("1 of 2", "INFO")}, {fact("2 of 2", "FAIL")}}),
              ElementsAre(StartsWith("2 of 2 (in 2")));
  EXPECT_THAT(
      joined({{fact("slow", "WARN", "gemm/a:throughput")}, {fact("slower", "WARN", "gemm/a:throughput")}}),
      ElementsAre(StartsWith("slow (in 2")));
}

/// Four files an hour apart; in 8 nodes of two devices one loses more in each.
results::VerdictData joined_drift(double loss) {
  verdict::Join join;
  for (std::size_t i = 0; i < 4; ++i) {
    auto r = cluster(8, 2);
    const auto rows = rows_of_kind(r, "device");
    std::vector<double> values;
    for (std::size_t e = 0; e < rows.size(); ++e)
      values.push_back(1e11 * wobble(e + 3 * i, 0.001) * (e == 7 ? 1 - loss * static_cast<double>(i) : 1));
    add_case(r, "gemm", "fp32-n1024-together", "throughput", "FLOP/s", results::Better::higher, "device",
             rows, values);
    r.info.run_id = "run" + std::to_string(i);
    r.info.started = "2026-01-01T0" + std::to_string(i) + ":00:00Z";
    results::VerdictData v;
    v.state = "PASS";
    for (std::size_t e = 0; e < r.entities.size(); ++e)
      if (r.entities[e].kind != "cluster") v.entities.push_back({static_cast<std::int32_t>(e), "PASS", ""});
    join.add("seg" + std::to_string(i) + ".h5", r, v);
  }
  auto v = join.verdict(false);
  for (auto& state : v.entities)  // the name is what tests ask for
    if (state.state != "PASS")
      state.state += " " + join.results().entities[static_cast<std::size_t>(state.entity)].name;
  return v;
}

TEST(VerdictJoin, WhatDriftsWarnsOfItsNodeTooAndIsAReason) {
  const auto v = joined_drift(0.013);
  EXPECT_EQ(v.state, "WARN");
  ASSERT_EQ(v.findings.size(), 1U);
  const auto& f = v.findings[0];
  EXPECT_EQ(f.kind, "drift");
  EXPECT_EQ(f.better, "higher");
  EXPECT_THAT(f.evidence, MatchesRegex("seg[0-3].h5:/cases/gemm/fp32-n1024-together/throughput"));
  EXPECT_THAT(v.reasons, ElementsAre(f.text));
  std::vector<std::string> warned;
  for (const auto& state : v.entities) {
    if (state.state == "PASS") continue;
    warned.push_back(state.state);
    EXPECT_EQ(state.reason, f.text);
  }
  EXPECT_THAT(warned, UnorderedElementsAre("WARN node3", "WARN node3/cores2-3"));
  EXPECT_THAT(joined_drift(0).reasons, IsEmpty());
}

results::VerdictData with_finding(const std::string& state, const results::Finding& f) {
  results::VerdictData v;
  v.state = state;
  v.findings = {f};
  if (f.severity == state || state == "INCONCLUSIVE") v.reasons.push_back(f.text);
  return v;
}

TEST(VerdictJoin, FindingsThatDecideTheStateAreReasons) {
  verdict::Join join;
  auto r = healthy();
  r.info.run_id = "a";
  join.add("a.h5", r, with_finding("WARN", fact("slow")));
  EXPECT_THAT(join.verdict(false).reasons, ElementsAre("slow (in 1 of 1 file: a.h5)"));
  r.info.run_id = "b";
  auto open = with_finding("INCONCLUSIVE", fact("oversubscribed"));
  open.reasons.push_back("no time was left");
  join.add("b.h5", r, open);
  EXPECT_THAT(join.verdict(false).reasons,
              ElementsAre("b.h5: no time was left", "oversubscribed (in 1 of 2 files: b.h5)"));
  r.info.run_id = "c";
  join.add("c.h5", r, with_finding("FAIL", fact("dead", "FAIL")));
  EXPECT_THAT(join.verdict(false).reasons,
              ElementsAre("dead (in 1 of 3 files: c.h5)", "b.h5: no time was left",
                          "oversubscribed (in 1 of 3 files: b.h5)"));
}

TEST(VerdictJoin, CountsOfComparedValuesAreSummedAndTheChanceIsThatOfOneWrongFailOrMore) {
  verdict::Join join;
  auto r = healthy();
  results::VerdictData v;
  v.state = "PASS";
  v.false_alarm_rate = 0.006;
  const auto add = [&](std::vector<std::pair<std::string, std::size_t>> compared) {
    r.info.run_id += "+";
    v.compared = std::move(compared);
    join.add(r.info.run_id + ".h5", r, v);
    return join.verdict(false);
  };
  auto all = add({{"limits", 0}, {"hardware rates", 0}, {"peers only", 0}, {"nothing", 3}});
  EXPECT_EQ(all.basis,
            "limits 0, hardware rates 0, peers only 0, nothing 3 (checks and counters only), in 1 file");
  EXPECT_NEAR(all.false_alarm_rate, 0.006, 1e-12);
  all = add({{"limits", 2}, {"hardware rates", 1}, {"peers only", 40}, {"nothing", 0}, {"left out", 1}});
  EXPECT_EQ(all.basis,
            "limits 2, hardware rates 1, peers only 40, nothing 3, left out 1, in 2 files judged together");
  for (int i = 2; i < 200; ++i) all = add({{"limits", 0}, {"peers only", 8}});
  EXPECT_THAT(all.basis, HasSubstr("peers only 1624, nothing 3"));
  EXPECT_NEAR(all.false_alarm_rate, 1 - std::pow(0.994, 200), 1e-9);
  v.false_alarm_rate = 3;  // of many parts more than one is expected
  EXPECT_EQ(add({{"limits", 0}}).false_alarm_rate, 1);
}

TEST(VerdictJoin, FilesOfOneRunAreNamedOnce) {
  verdict::Join join;
  results::VerdictData v;
  v.state = "PASS";
  join.add("a.h5", healthy(), v);
  join.leave_out("b.h5", "a.h5");
  EXPECT_EQ(join.verdict(false).findings.at(0).text, "b.h5 holds the same run as a.h5 and is not counted");
  for (const char* file : {"c.h5", "d.h5", "e.h5"}) join.leave_out(file, "a.h5");
  const auto all = join.verdict(false);
  ASSERT_EQ(all.findings.size(), 1U);
  EXPECT_EQ(all.findings[0].severity, "INFO");
  EXPECT_EQ(all.findings[0].text,
            "b.h5, c.h5, d.h5 and 1 more hold the same run as a.h5 and are not counted");
}

}  // namespace
}  // namespace assay
