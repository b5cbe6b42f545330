// SPDX-License-Identifier: Apache-2.0
#include "report/decision.hpp"

#include <gmock/gmock.h>

#include "report/report.hpp"
#include "tests/unit/fabricate.hpp"

namespace assay {
namespace {

using namespace fabricate;

results::Finding& add_fail(results::VerdictData& v, const char* level, const char* name, const char* kind) {
  auto& f = v.findings.emplace_back();
  f.severity = "FAIL";
  f.level = level;
  f.name = name;
  f.kind = kind;
  return f;
}

TEST(Decision, NamesTheNodesAndWhatIsWrongWithThem) {
  const auto r = healthy(8);
  auto v = judge(r);
  EXPECT_EQ(report::decision_words(r, v), "No fault was found.");
  v.state = "FAIL";
  add_fail(v, "node", "node3", "slow").members = {"node3/gpu0", "node3/gpu1"};
  add_fail(v, "nic", "node5/nic3", "slow");
  add_fail(v, "device", "node5/gpu2", "dead");
  add_fail(v, "device", "node5/gpu2", "dead");  // in another suite
  for (auto& e : v.entities)
    if (e.entity == row_named(r, "node3") || e.entity == row_named(r, "node5")) e.state = "FAIL";
  EXPECT_EQ(report::decision_words(r, v),
            "Do not accept: 2 of 8 nodes: node3 (2 slow GPUs), node5 (slow NIC 3, dead GPU 2).");
  add_fail(v, "switch", "switch:L5", "slow");
  EXPECT_EQ(
      report::decision_words(r, v),
      "Do not accept: 2 of 8 nodes: node3 (2 slow GPUs), node5 (slow NIC 3, dead GPU 2); switch L5 (slow).");
  for (auto& e : v.entities) e.state = "PASS";
  v.findings.erase(v.findings.begin(), v.findings.end() - 1);
  EXPECT_EQ(report::decision_words(r, v), "Do not accept: switch L5 (slow).");
  v.state = "INCONCLUSIVE";
  EXPECT_THAT(report::decision_words(r, v), ::testing::StartsWith("Do not accept yet: "));
}

TEST(Decision, APassWithoutPromisedValuesIsSaidToProveLittle) {
  EXPECT_THAT(report::unpromised_words("", ""), ::testing::HasSubstr("No promised values were checked"));
  EXPECT_EQ(report::unpromised_words("contract.toml", ""), "");
  EXPECT_EQ(report::unpromised_words("", "acceptance.h5"), "");
}

TEST(Decision, LostNodesAreNamedFirst) {
  auto r = healthy(12, 1);
  r.events.push_back({1, rows_of_kind(r, "device")[9], "lost", "node9 was lost"});
  auto v = judge(r);
  for (auto& e : v.entities) e.state = "INCONCLUSIVE";
  EXPECT_THAT(
      report::summary(r, v, "run.h5", {160, false}),
      ::testing::HasSubstr("nodes: 12 INCONCLUSIVE (1 lost: node9; node0, node1, node2, node3 and 7 more)"));
}

TEST(Decision, FailsOfPartsWithoutANodeAreInTheLastLines) {
  const auto r = healthy(4);
  auto v = judge(r);
  for (const char* name : {"switch:L1", "switch:L5"}) {
    v.findings.emplace_back().severity = "FAIL";
    v.findings.back().level = "switch";
    v.findings.back().name = v.findings.back().text = name;
  }
  EXPECT_THAT(report::summary(r, v, "run.h5", {}),
              ::testing::HasSubstr("nodes: 4 PASS\nother parts: 2 switches FAIL (L1, L5)\n"));
}

}  // namespace
}  // namespace assay
