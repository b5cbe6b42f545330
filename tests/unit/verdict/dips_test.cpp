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

struct Stretch {
  std::size_t part, first, length;
  double rate;
};

/// A fleet of which some parts are slow in consecutive samples.
results::Results disturbed(std::size_t parts, int samples, const std::vector<Stretch>& stretches) {
  auto fleet = Fleet::of(parts, 0.002, 1);
  fleet.samples = samples;
  auto r = fleet.run();
  auto& values = first_case(r).metrics[0].values;
  for (const auto& of : stretches)
    for (std::size_t s = of.first; s < of.first + of.length; ++s)
      values[of.part * static_cast<std::size_t>(samples) + s] *= of.rate;
  return r;
}

/// A daemon or a hot spell lasts for several samples. Each sample was an event of its own, and the part with
/// two such spells was named.
TEST(VerdictDips, ASpellOfSlowSamplesIsOneEvent) {
  for (const std::size_t parts : {6U, 24U, 64U})
    for (const int samples : {30, 60, 100}) {
      const auto v = judge(disturbed(parts, samples, {{2, 3, 7, 0.7}, {2, 15, 10, 0.6}, {4, 8, 3, 0.75}}));
      EXPECT_THAT(intermittent(v), SizeIs(0)) << parts << " " << samples << all_reasons(v);
    }
}

/// Without another metric of the run the chance of dips counts for links, too.
TEST(VerdictDips, ThreeSpellsOfLinksOfANodeMayBeChance) {
  simulate::Spec spec;
  spec.nodes = 8;
  spec.samples = 30;
  spec.spike_share = 0;
  spec.metrics = simulate::pick_metrics({"p2p/bandwidth-uni-*"});
  const auto named = [&](int spells) {
    auto r = simulate::screen(spec);
    r.info.injected = false;
    auto& c = r.cases.front();
    const std::int32_t rank = c.source[0];
    auto& values = c.metrics[0].values;
    const std::size_t width = c.samples();
    int left = spells;
    for (std::size_t row = 0; row < c.entities() && left > 0; ++row) {
      if (c.source[row] != rank) continue;
      --left;
      for (std::size_t s = 5; s < 9; ++s) values[row * width + s] *= 0.5;
    }
    EXPECT_EQ(left, 0);
    return intermittent(judge(r));
  };
  EXPECT_THAT(named(3), SizeIs(0));
  EXPECT_THAT(named(7), SizeIs(1));
}

/// Noise takes samples of 80 % across the bound of a dip, which made one spell several.
TEST(VerdictDips, ASpellAtTheBoundIsOneEvent) {
  const auto v = judge(disturbed(24, 100,
                                 {{2, 20, 1, 0.7},
                                  {2, 21, 1, 0.81},
                                  {2, 22, 1, 0.7},
                                  {2, 23, 1, 0.82},
                                  {2, 24, 1, 0.7},
                                  {2, 25, 1, 0.81},
                                  {2, 26, 1, 0.7}}));
  EXPECT_THAT(intermittent(v), SizeIs(0)) << all_reasons(v);
}

TEST(VerdictDips, MoreSpellsThanAnyPeerAreNamed) {
  std::vector<Stretch> stretches;
  for (std::size_t i = 0; i < 8; ++i) stretches.push_back({2, 4 + 12 * i, 4, 0.6});
  for (std::size_t part = 4; part < 16; ++part) stretches.push_back({part, 5 * part, 6, 0.7});
  const auto v = judge(disturbed(24, 100, stretches));
  EXPECT_EQ(intermittent(v), std::set<std::string>{device(2)}) << all_reasons(v);
  EXPECT_THAT(find_kind(v, "intermittent")->text,
              HasSubstr("32 of 100 samples, in 8 runs of up to 4, at less than 80.0 % of its own"));
}

TEST(VerdictDips, AMuchLongerSpellThanAnyPeersIsNamed) {
  for (const std::size_t length : {15U, 30U}) {
    const auto v = judge(disturbed(24, 100, {{2, 40, length, 0.5}, {5, 3, 5, 0.7}, {9, 60, 7, 0.7}}));
    const std::set<std::string> named{device(2)};
    EXPECT_EQ(intermittent(v), length > 20 ? named : std::set<std::string>{}) << all_reasons(v);
    if (length > 20) {
      EXPECT_THAT(find_kind(v, "intermittent")->text, HasSubstr("30 of 100 samples in a row at less than"));
    }
  }
}

/// A part with one spell, of more samples, hid one with scattered dips.
TEST(VerdictDips, ASpellHidesNoPartThatDips) {
  std::vector<Stretch> stretches{{7, 30, 10, 0.7}};
  for (std::size_t i = 0; i < 8; ++i) stretches.push_back({2, 5 + 11 * i, 1, 0.5});
  const auto v = judge(disturbed(24, 100, stretches));
  EXPECT_EQ(intermittent(v), std::set<std::string>{device(2)}) << all_reasons(v);
}

/// Of fewer than ten parts a fifth is one: two hid each other.
TEST(VerdictDips, TwoOfFewAreBothNamed) {
  for (const std::size_t parts : {4U, 5U, 6U, 9U})
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      const auto v = judge(dipping(parts, {{1, 0.3}, {3, 0.2}}, seed));
      EXPECT_EQ(intermittent(v), (std::set<std::string>{device(1), device(3)})) << parts << all_reasons(v);
    }
  const auto most = judge(dipping(3, {{0, 0.3}, {2, 0.2}}, 1));
  EXPECT_THAT(intermittent(most), SizeIs(0)) << all_reasons(most);
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

/// Who waited for a file server writes a backlog afterwards. A dip in another case still counts, also a rarer
/// one.
TEST(VerdictDips, ACaseInWhichAServerDidNotAnswerNamesNoPart) {
  auto r = dipping(8, {{3, 0.4}}, 1);
  EXPECT_THAT(intermittent(judge(r)), SizeIs(1));
  auto& again = r.cases.emplace_back(first_case(r));
  again.name += "-again";
  r.events.push_back({1, 0, "launch-warn", "/scratch did not answer for 25 s", "hang", first_case(r).path()});
  auto& values = again.metrics[0].values;
  for (std::size_t s = 0; s < 100; ++s)
    if (s % 8 != 0) values[3 * 100 + s] = values[2 * 100 + s];
  const auto both = judge(r);
  EXPECT_EQ(intermittent(both), std::set<std::string>{device(3)}) << all_reasons(both);
  r.cases.pop_back();
  const auto v = judge(r);
  EXPECT_THAT(intermittent(v), SizeIs(0)) << all_reasons(v);
}

}  // namespace
}  // namespace assay
