// SPDX-License-Identifier: Apache-2.0
// Verdicts of several files as one: nothing that a file says is lost, and nothing is said for each file.
#include "verdict/join.hpp"

#include <gmock/gmock.h>

#include "tests/unit/fabricate.hpp"

namespace assay {
namespace {

using namespace fabricate;
using ::testing::ElementsAre;
using ::testing::StartsWith;

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

}  // namespace
}  // namespace assay
