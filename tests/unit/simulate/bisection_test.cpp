// SPDX-License-Identifier: Apache-2.0
// Where pairs and random groups are clean and all nodes together are slow, their halves tell which part it
// is.
#include <algorithm>

#include "simulate/simulate.hpp"
#include "tests/unit/expect_error.hpp"
#include "verdict/collectives.hpp"
#include "verdict/judgement.hpp"
#include "verdict/retest/retest.hpp"

namespace assay::simulate {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

Spec spec_of(std::uint64_t seed, const std::string& fault) {
  Spec spec;
  spec.nodes = 64;
  spec.devices_per_node = 2;
  spec.leaves = 8;
  spec.seed = seed;
  spec.metrics = pick_metrics({"p2p/bandwidth-uni*", "allreduce"});
  if (!fault.empty()) spec.faults = {parse_fault(fault)};
  return spec;
}

std::size_t halves(const results::Results& r) {
  return static_cast<std::size_t>(std::count_if(
      r.cases.begin(), r.cases.end(), [](const auto& c) { return c.parameters.contains("variant"); }));
}

std::vector<const results::Finding*> said(const results::Results& r) {
  std::vector<const results::Finding*> found;
  for (const auto& f : r.verdict->findings)
    if (f.suite == "allreduce" || f.suite == "p2p") found.push_back(&f);
  return found;
}

TEST(Bisection, NamesTheSmallestSlowPart) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const auto r = run(spec_of(seed, "slow:node=17,suite=allreduce,case=*world*,factor=0.3"));
    EXPECT_EQ(halves(r), 1U);
    const auto found = said(r);
    ASSERT_EQ(found.size(), 1U) << seed;
    EXPECT_EQ(found[0]->severity, "WARN");
    EXPECT_EQ(found[0]->members.size(), 2U);
    EXPECT_THAT(found[0]->members, Contains(HasSubstr("17")));
    EXPECT_NEAR(*found[0]->deficit, 0.7, 0.05);
  }
}

TEST(Bisection, SlowOnlyWithAllNodesIsANote) {
  const auto r = run(spec_of(1, "slow:suite=allreduce,case=*world*,factor=0.3"));
  EXPECT_EQ(halves(r), 1U);
  const auto found = said(r);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0]->severity, "INFO");
  EXPECT_THAT(found[0]->text, HasSubstr("all nodes"));
}

/// No time was left for its halves, or they failed: nothing was said, or that none of them is slow.
TEST(Bisection, WithoutItsHalvesASlowWorldIsANote) {
  const auto slow = run(spec_of(1, "slow:node=17,suite=allreduce,case=*world*,factor=0.3"));
  for (const bool failed : {false, true}) {
    auto r = slow;
    const auto halved = [](const auto& c) { return c.parameters.contains("variant"); };
    if (failed)
      std::ranges::find_if(r.cases, halved)->metrics.clear();
    else
      std::erase_if(r.cases, halved);
    r.verdict = verdict::judge(r, verdict::options_from(r));
    const auto found = said(r);
    ASSERT_EQ(found.size(), 1U) << failed;
    EXPECT_EQ(found[0]->severity, "INFO");
    EXPECT_THAT(found[0]->text, HasSubstr("in groups of 4 nodes"));
    EXPECT_THAT(found[0]->text, HasSubstr("its halves were not measured"));
  }
}

/// A world that lost speed against its past is told as that already.
TEST(Bisection, WithoutItsHalvesThereIsNoNoteBesideTheHistory) {
  auto r = run(spec_of(1, "slow:node=17,suite=allreduce,case=*world*,factor=0.3"));
  std::erase_if(r.cases, [](const auto& c) { return c.parameters.contains("variant"); });
  const auto options = verdict::options_from(r);
  for (const bool known : {false, true}) {
    verdict::Judgement j(r, options);
    verdict::collect_series(j);
    for (const auto& s : j.series) {
      if (!known || s.stage != "world") continue;
      auto f = j.about(s, -1, "WARN", "abnormality", "drift");
      f.reference_kind = "history";
      j.add(std::move(f), {});
    }
    const auto before = j.found.size();
    verdict::judge_bisection(j);
    EXPECT_EQ(j.found.size() - before, known ? 0U : 1U);
  }
}

TEST(Bisection, IsLeftOutWhereTheWorldIsFastOrItsReasonKnown) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const auto healthy = run(spec_of(seed, ""));
    EXPECT_EQ(halves(healthy), 0U);
    EXPECT_TRUE(said(healthy).empty());
  }
  const auto known = run(spec_of(1, "slow:node=17,nic=0,factor=0.3"));
  EXPECT_EQ(halves(known), 0U);
  ASSERT_FALSE(said(known).empty());
}

TEST(Bisection, ABrokenLimitAsksForItToo) {
  const Spec spec = spec_of(1, "slow:node=40,suite=allreduce,case=*world*,factor=0.6");
  verdict::Options options;
  options.limits_text = "[[limit]]\nmetric = \"allreduce/allreduce-world-*:busbw\"\nmin = \"38 GB/s\"\n";
  EXPECT_EQ(halves(run(spec)), 0U);
  const auto r = run(spec, options);
  EXPECT_EQ(halves(r), 1U);
  const auto found = said(r);
  EXPECT_TRUE(std::any_of(found.begin(), found.end(), [](const auto* f) {
    return f->text.find("against its limit") != std::string::npos && f->members.size() == 2 &&
           f->members[0].find("40") != std::string::npos;
  }));
}

}  // namespace
}  // namespace assay::simulate
