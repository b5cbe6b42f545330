// SPDX-License-Identifier: Apache-2.0
// Rates and times that cannot be: a dead part is never passed over.
#include <gmock/gmock.h>

#include <algorithm>
#include <limits>

#include "fleet.hpp"

namespace assay {
namespace {

using namespace fabricate;
using ::testing::HasSubstr;

constexpr double inf = std::numeric_limits<double>::infinity();

void set_all(results::Results& r, std::size_t row, double value) {
  auto& c = first_case(r);
  for (std::size_t s = 0; s < c.samples(); ++s) c.metrics[0].values[row * c.samples() + s] = value;
}

TEST(VerdictImpossible, ADeadDeviceIsAFault) {
  for (const std::size_t n : {2U, 5U, 12U, 64U}) {
    for (const double value : {0.0, -5.0, inf, -inf, 1.7e308, 5e-324}) {
      auto r = Fleet::of(n, 0.002).run();
      set_all(r, 1, value);
      const auto v = judge(r);
      EXPECT_EQ(v.state, "FAIL") << n << " " << value;
      ASSERT_FALSE(v.findings.empty());
      EXPECT_EQ(v.findings[0].name, "node1/cores0-1");
      EXPECT_EQ(v.findings[0].kind, "dead");
      EXPECT_EQ(state_of(r, v, "node1"), "FAIL");
      EXPECT_EQ(state_of(r, v, "node0"), "PASS");
      EXPECT_THAT(v.basis, HasSubstr("left out 1"));
    }
  }
}

TEST(VerdictImpossible, OnlyImpossibleValuesAreInconclusive) {
  for (const double value : {0.0, -1.0, inf}) {
    auto r = Fleet::of(16, 0.002).run();
    for (std::size_t i = 0; i < 16; ++i) set_all(r, i, value);
    const auto v = judge(r);
    EXPECT_EQ(v.state, "INCONCLUSIVE") << value;
    EXPECT_THAT(all_reasons(v), HasSubstr("impossible"));
    EXPECT_EQ(state_of(r, v, "node3"), "INCONCLUSIVE");
  }
}

TEST(VerdictImpossible, ValuesThatOverflowStatisticsAccuseNobody) {
  for (const char* unit : {"B/s", "s", "count"}) {
    auto r = cluster(4);
    const auto rows = rows_of_kind(r, "device");
    add_case(r, "imported", "x", "value", unit, results::Better::higher, "device", rows,
             {1.77e308, 1.78e308, 1.79e308, 1.775e308}, 9);
    const auto v = judge(r);
    EXPECT_EQ(v.state, "INCONCLUSIVE") << unit;
    EXPECT_THAT(all_reasons(v), HasSubstr("imported/x:value: an impossible value"));
    for (const auto& f : v.findings) EXPECT_TRUE(f.severity == "INFO" || f.name.empty()) << f.text;
  }
}

TEST(VerdictImpossible, ASingleSampleLeavesItsPartUnjudged) {
  auto r = Fleet::of(16, 0.002).run();
  first_case(r).metrics[0].values[3 * first_case(r).samples() + 2] = 0;
  const auto v = judge(r);
  EXPECT_EQ(v.state, "INCONCLUSIVE");
  EXPECT_EQ(state_of(r, v, "node3"), "INCONCLUSIVE");
  EXPECT_EQ(state_of(r, v, "node4"), "PASS");
}

TEST(VerdictImpossible, CountsAndRatiosMayBeZero) {
  auto r = healthy(8);
  const auto rows = rows_of_kind(r, "device");
  add_case(r, "memory", "pattern-together", "coverage", "1", results::Better::higher, "device", rows,
           std::vector<double>(8, 0.0));
  add_case(r, "memory", "exact-together", "errors", "count", results::Better::lower, "device", rows,
           std::vector<double>(8, 0.0));
  add_selftest(r, "memory");
  EXPECT_EQ(judge(r).state, "PASS") << all_reasons(judge(r));
}

/// Its values are noise, and that says nothing more of it.
TEST(VerdictImpossible, ADeadDeviceIsNotNoisyToo) {
  auto r = Fleet::of(12, 0.002).run();
  r.info.level = "standard";
  auto& c = first_case(r);
  for (std::size_t s = 0; s < c.samples(); ++s)
    c.metrics[0].values[c.samples() + s] = -1.0 - static_cast<double>(s % 5);
  const auto v = judge(r);
  EXPECT_EQ(v.state, "FAIL");
  EXPECT_EQ(find_kind(v, "noisy"), nullptr);
  EXPECT_NE(find_kind(v, "dead"), nullptr);
}

/// It was also "not confirmed: not measured again", and beyond its limit by a number of 30 digits.
TEST(VerdictImpossible, APartThatDiesInItsRetestIsOneFinding) {
  for (const double value : {0.0, -5.0, inf, 1e200, 1e-200}) {
    auto fleet = Fleet::of(12, 0.002);
    fleet.rate[3] *= 0.9;
    auto r = fleet.run();
    Fleet::run_retests(r, fleet);
    ASSERT_EQ(r.cases.back().name, "triad-together.c1");
    auto& again = r.cases.back();
    const auto row = static_cast<std::size_t>(
        std::find(again.entity.begin(), again.entity.end(), row_named(r, "node3/cores0-1")) -
        again.entity.begin());
    for (std::size_t s = 0; s < again.samples(); ++s)
      again.metrics[0].values[row * again.samples() + s] = value;
    for (const std::string limits :
         {"", "[[limit]]\nmetric = \"memory/triad-together:bandwidth\"\nmin = \"95 GB/s\"\n"}) {
      const auto v = judge(r, limits);
      EXPECT_EQ(v.state, "FAIL");
      ASSERT_EQ(v.findings.size(), 1U) << value << all_reasons(v);
      EXPECT_EQ(v.findings[0].name + " " + v.findings[0].kind, "node3/cores0-1 dead");
    }
  }
}

}  // namespace
}  // namespace assay
