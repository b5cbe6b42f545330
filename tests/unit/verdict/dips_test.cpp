// SPDX-License-Identifier: Apache-2.0
// Parts that are slow now and then.
#include <gmock/gmock.h>

#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fleet.hpp"

namespace assay {
namespace {

using namespace fabricate;
using ::testing::HasSubstr;
using ::testing::SizeIs;

/// A fleet whose parts are at half speed in these shares of 100 samples.
results::Results dipping(std::size_t parts, const std::vector<std::pair<std::size_t, double>>& shares,
                         std::uint64_t seed) {
  auto fleet = Fleet::of(parts, 0.002, seed);
  fleet.samples = 100;
  auto r = fleet.run();
  auto& values = first_case(r).metrics[0].values;
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> chance;
  for (const auto& [part, share] : shares)
    for (std::size_t s = 0; s < 100; ++s)
      if (chance(random) < share) values[part * 100 + s] *= 0.5;
  return r;
}

std::set<std::string> intermittent(const results::VerdictData& v) {
  std::set<std::string> names;
  for (const auto& f : v.findings) {
    if (f.kind != "intermittent" || f.severity != "WARN") continue;
    if (f.members.empty()) names.insert(f.name);
    names.insert(f.members.begin(), f.members.end());
  }
  return names;
}

/// Each was compared with the second worst, and nobody was named.
TEST(VerdictDips, SeveralPartsDoNotHideEachOther) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed)
    for (const double share : {0.1, 0.3})
      for (const std::size_t bad : {1U, 2U, 4U, 12U}) {
        std::vector<std::pair<std::size_t, double>> shares;
        for (std::size_t i = 0; i < bad; ++i) shares.emplace_back(5 * i, share);
        const auto v = judge(dipping(64, shares, seed));
        std::set<std::string> expected;
        for (const auto& [part, of] : shares) expected.insert(device(static_cast<int>(part)));
        EXPECT_EQ(intermittent(v), expected) << seed << " " << share << " " << bad << all_reasons(v);
      }
}

TEST(VerdictDips, ManyAreOneFinding) {
  std::vector<std::pair<std::size_t, double>> shares;
  for (std::size_t i = 0; i < 12; ++i) shares.emplace_back(i, 0.3);
  const auto v = judge(dipping(64, shares, 1));
  const auto* f = find_kind(v, "intermittent");
  ASSERT_NE(f, nullptr) << all_reasons(v);
  EXPECT_THAT(f->members, SizeIs(12));
  EXPECT_EQ(f->name, "cluster");
  EXPECT_THAT(f->text, HasSubstr("12 parts are slow now and then; worst "));
}

/// One in a fifth of the samples beside one that is slow in most of them, which is FAIL.
TEST(VerdictDips, APartThatFailsHidesNoOther) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    auto r = dipping(64, {{9, 0.2}, {3, 0.7}}, seed);
    auto& block = first_case(r).metrics[0];
    ASSERT_FALSE(block.values.empty());
    const auto v = judge(r);
    EXPECT_TRUE(intermittent(v).contains(device(9))) << seed << all_reasons(v);
  }
}

TEST(VerdictDips, PartsThatAllDipAlikeAreNotNamed) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed)
    for (const double share : {0.02, 0.1, 0.3})
      for (const std::size_t parts : {2U, 6U, 8U, 16U, 64U}) {
        std::vector<std::pair<std::size_t, double>> shares;
        for (std::size_t i = 0; i < parts; ++i) shares.emplace_back(i, share);
        const auto v = judge(dipping(parts, shares, seed));
        EXPECT_THAT(intermittent(v), SizeIs(0)) << seed << " " << share << " " << parts << all_reasons(v);
      }
}

}  // namespace
}  // namespace assay
