// SPDX-License-Identifier: Apache-2.0
// Fewer than 24 parts of which half are slow: nobody stands out, and the fleet is not good.
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

TEST(VerdictFewSplit, MoreThanHalfSlowIsNoMilder) {
  const auto v = judge(with_slow(16, 10, 0.5).run());
  ASSERT_NE(split_of(v), nullptr) << all_reasons(v);
  EXPECT_EQ(split_of(v)->severity, "WARN");
  EXPECT_EQ(split_of(v)->members.size(), 6U);
}

TEST(VerdictFewSplit, AsMuchAsKindsDifferIsNoFinding) {
  EXPECT_EQ(judge(with_slow(16, 8, 0.05).run()).state, "PASS");
}

TEST(VerdictFewSplit, HealthyFleetsHaveNone) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const auto v = judge(Fleet::of(6 + seed % 18, 0.05, seed).run());
    EXPECT_EQ(split_of(v), nullptr) << seed << all_reasons(v);
  }
}

}  // namespace
}  // namespace assay
