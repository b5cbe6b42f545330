// SPDX-License-Identifier: Apache-2.0
// Where pairs and random groups are clean and all nodes together are slow, their halves tell which part it
// is.
#include <algorithm>

#include "simulate/simulate.hpp"
#include "tests/unit/expect_error.hpp"
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
