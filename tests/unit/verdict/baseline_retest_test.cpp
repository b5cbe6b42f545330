// SPDX-License-Identifier: Apache-2.0
// Parts below a baseline that were measured again in the same job.
#include <gmock/gmock.h>

#include "baseline_rig.hpp"

namespace assay {
namespace {

using namespace fabricate;
using baseline_rig::baseline;
using baseline_rig::judged;
using results::Results;
using testing::HasSubstr;

/// One node at `rate` in four blocks over 156 s, whose retest is a baseline's usual rate.
Results cleared_node(double rate) {
  auto r = cluster(1);
  r.info.run_id = "now";
  auto& c = add_case(r, "gemm", "fp32-n2048-together", "throughput", "FLOP/s", results::Better::higher,
                     "device", rows_of_kind(r, "device"), {rate}, 40);
  for (std::size_t s = 0; s < c.samples(); ++s) {
    c.block[s] = static_cast<std::int32_t>(s / 10);
    c.t[s] = 4.0 * static_cast<double>(s);
  }
  auto again = c;
  again.name += ".c1";
  for (double& v : again.metrics[0].values) v *= 1e11 / rate;
  r.cases.push_back(again);
  add_selftest(r, "gemm");
  return r;
}

TEST(VerdictBaselineRetest, WhatLastedFailsWhateverTheRetestMeasured) {
  const auto fleet = baseline(healthy(32));
  const auto v = judged(cleared_node(0.5e11), fleet);
  EXPECT_EQ(v.state, "FAIL");
  ASSERT_EQ(v.findings.size(), 1U);
  EXPECT_EQ(v.findings[0].confirmed_by, "blocks");
  EXPECT_NEAR(*v.findings[0].deficit, 0.5, 0.01);
  EXPECT_EQ(*v.findings[0].samples, 40);
  EXPECT_THAT(v.findings[0].text, HasSubstr("not confirmed by the retest, but by 3 blocks over 60 s"));
}

TEST(VerdictBaselineRetest, WhatDidNotLastIsANote) {
  const auto fleet = baseline(healthy(32));
  auto quick = cleared_node(0.5e11);
  first_case(quick).t.assign(first_case(quick).t.size(), 0.0);
  auto smoke = cleared_node(0.85e11);
  smoke.info.level = "smoke";
  for (const auto& r : {quick, smoke}) {
    const auto v = judged(r, fleet);
    EXPECT_EQ(v.state, "PASS");
    ASSERT_EQ(v.findings.size(), 1U);
    EXPECT_EQ(v.findings[0].severity, "INFO");
    EXPECT_EQ(v.findings[0].kind, "intermittent");
    EXPECT_EQ(v.findings[0].reference_kind, "baseline");
    EXPECT_THAT(v.findings[0].text,
                testing::ContainsRegex("not confirmed by the retest .screening: (50|85)"));
  }
}

/// Twelve nodes, the first `screened` of which were at `rate` and the first `again` at `rate_again` when they
/// were measured again.
Results twelve(std::size_t screened, double rate, std::size_t again, double rate_again) {
  auto r = healthy(12);
  r.info.run_id = "now";
  for (auto& c : r.cases) c.t.assign(c.t.size(), 0.0);
  auto retest = first_case(r);
  retest.name += ".c1";
  for (std::size_t i = 0; i < again * retest.samples(); ++i) retest.metrics[0].values[i] *= rate_again;
  for (std::size_t i = 0; i < screened * retest.samples(); ++i) first_case(r).metrics[0].values[i] *= rate;
  r.cases.push_back(retest);
  return r;
}

TEST(VerdictBaselineRetest, APartThatTheRetestClearedIsNoMember) {
  const auto fleet = baseline(healthy(12));
  std::size_t notes = 0;
  for (const auto& f : judged(twelve(9, 0.9, 0, 1), fleet).findings) {
    if (f.reference_kind != "baseline") continue;
    EXPECT_EQ(f.severity, "INFO") << f.text;
    ++notes;
  }
  EXPECT_EQ(notes, 9U);
  const auto v = judged(twelve(10, 0.8, 9, 0.88), fleet);
  EXPECT_EQ(count_severity(v, "FAIL"), 1U) << all_reasons(v);
  std::size_t singles = 0;
  for (const auto& f : v.findings) {
    if (f.reference_kind != "baseline") continue;
    EXPECT_EQ(f.severity, f.level == "cluster" ? "FAIL" : "INFO") << f.text;
    if (f.level == "cluster") {
      EXPECT_EQ(f.members.size(), 9U);
      EXPECT_NEAR(*f.deficit, 0.12, 0.005) << "that of the retest";
    } else {
      EXPECT_EQ(f.name, "node9/cores0-1");
      ++singles;
    }
  }
  EXPECT_EQ(singles, 1U);
}

}  // namespace
}  // namespace assay
