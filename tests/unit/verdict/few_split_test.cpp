// SPDX-License-Identifier: Apache-2.0
// Groups of slow parts: half of fewer than 24, in which none stands out, and the states of equal parts.
#include <gmock/gmock.h>

#include "fleet.hpp"

namespace assay {
namespace {

using namespace fabricate;

Fleet with_slow(std::size_t parts, std::size_t slow, double deficit, std::uint64_t seed = 1) {
  auto fleet = Fleet::of(parts, 0.003, seed);
  for (std::size_t i = 0; i < slow; ++i) fleet.rate[i] *= 1 - deficit;
  return fleet;
}

const results::Finding* split_of(const results::VerdictData& v) {
  for (const auto& f : v.findings)
    if (f.kind == "split" && f.level == "cluster") return &f;
  return nullptr;
}

TEST(VerdictFewSplit, HalfOfTheFleetSlowIsAWarningAndNobodyFails) {
  for (const std::size_t parts : {6, 8, 16, 23})
    for (const double deficit : {0.12, 0.5, 0.999}) {
      const auto v = judge(with_slow(parts, parts / 2, deficit).run());
      EXPECT_EQ(v.state, "WARN") << parts << " " << deficit << all_reasons(v);
      const auto* f = split_of(v);
      ASSERT_NE(f, nullptr) << parts << " " << deficit << all_reasons(v);
      EXPECT_EQ(f->members.size(), parts / 2);
      EXPECT_NEAR(*f->deficit, deficit, 0.02);
    }
}

TEST(VerdictFewSplit, MoreThanHalfSlowIsAWarningToo) {
  const auto v = judge(with_slow(16, 10, 0.5).run());
  ASSERT_NE(split_of(v), nullptr) << all_reasons(v);
  EXPECT_EQ(split_of(v)->severity, "WARN");
  EXPECT_EQ(split_of(v)->members.size(), 6U);
}

TEST(VerdictFewSplit, FivePercentBetweenHalvesIsNoFinding) {
  EXPECT_EQ(judge(with_slow(16, 8, 0.05).run()).state, "PASS");
}

TEST(VerdictFewSplit, EquallySlowPartsHaveEqualStates) {
  for (const double deficit : {0.09, 0.10, 0.11, 0.13})
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      const auto fleet = with_slow(30, 6, deficit, seed);
      auto r = fleet.run();
      Fleet::run_retests(r, fleet);
      const auto v = judge(r);
      std::set<std::string> states;
      for (std::size_t i = 0; i < 6; ++i) states.insert(state_of(r, v, "node" + std::to_string(i)));
      EXPECT_EQ(states.size(), 1U) << deficit << " " << seed << all_reasons(v);
    }
}

TEST(VerdictFewSplit, HealthyFleetsHaveNoSplit) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const auto v = judge(Fleet::of(6 + seed % 18, 0.05, seed).run());
    EXPECT_EQ(split_of(v), nullptr) << seed << all_reasons(v);
  }
}

}  // namespace
}  // namespace assay
