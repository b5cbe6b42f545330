// SPDX-License-Identifier: Apache-2.0
// Collectives over random groups of each rail by itself: which device of a node it is, or which rail.
#include <gmock/gmock.h>

#include "results/inventory_names.hpp"
#include "simulate/simulate.hpp"
#include "tests/unit/fabricate.hpp"
#include "verdict/collectives.hpp"

namespace assay {
namespace {

using namespace fabricate;
using ::testing::HasSubstr;
using ::testing::Not;

/// All-reduce over random groups of 4 nodes, each of the `rails` devices of a node with those of its number;
/// `slow` are faults of that suite as for `assay simulate --fault`, without kind and suite.
simulate::Spec rails_of(const std::vector<std::string>& slow, std::int64_t nodes = 32,
                        std::uint64_t seed = 1) {
  simulate::Spec spec;
  spec.nodes = nodes;
  spec.devices_per_node = 4;
  spec.samples = 5;
  spec.spike_share = 0;
  spec.seed = seed;
  spec.metrics = simulate::pick_metrics({"allreduce/allreduce-groups-*"});
  spec.metrics[0].name = "allreduce-rails-16777216-mpi";
  spec.metrics[0].parameters["rails"] = spec.devices_per_node;
  for (const std::string& fault : slow)
    spec.faults.push_back(simulate::parse_fault("slow:suite=allreduce," + fault));
  return spec;
}

results::Results rails_run(const std::vector<std::string>& slow, std::int64_t nodes = 32,
                           std::uint64_t seed = 1) {
  auto r = simulate::screen(rails_of(slow, nodes, seed));
  r.info.injected = false;
  return r;
}

std::vector<std::string> accused_rails(const results::VerdictData& v) {
  std::vector<std::string> names;
  for (const auto& f : v.findings)
    if (f.severity != "INFO") names.push_back(f.level + " " + f.kind + " " + f.name);
  return names;
}

TEST(VerdictRails, TheSlowDeviceOfANodeIsNamedAndItsSiblingsAreNot) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const std::string fault = "node=17,device=2,percent=40";
    auto r = rails_run({fault}, 32, seed);
    const auto v = judge(r);
    ASSERT_EQ(accused_rails(v), std::vector<std::string>{"device slow sim17/gpu2"}) << seed;
    EXPECT_NEAR(*v.findings[0].deficit, 0.4, 0.03);
    const auto asked = verdict::retests(r, verdict::options_from(r));
    ASSERT_EQ(asked.size(), 1U);
    EXPECT_EQ(asked[0].candidates, std::vector{row_named(r, "sim17/gpu2")});
    EXPECT_EQ(simulate::run_retests(r, rails_of({fault}, 32, seed), verdict::options_from(r)), 1U);
    const auto again = judge(r);
    ASSERT_EQ(accused_rails(again), std::vector<std::string>{"device slow sim17/gpu2"}) << seed;
    EXPECT_EQ(again.findings[0].confirmed_by, "retest");
  }
}

TEST(VerdictRails, TwoOfFourDevicesAreNotTheNode) {
  EXPECT_THAT(accused_rails(judge(rails_run({"node=9,device=1+3,percent=40"}))),
              ::testing::UnorderedElementsAre("device slow sim09/gpu1", "device slow sim09/gpu3"));
}

TEST(VerdictRails, ANodeSlowOnAllItsRailsIsOneFinding) {
  const auto v = judge(rails_run({"node=9,percent=40"}));
  ASSERT_EQ(accused_rails(v), std::vector<std::string>{"node slow sim09"});
  EXPECT_THAT(v.findings[0].text, HasSubstr("on all its rails"));
}

TEST(VerdictRails, ASlowRailIsOneFindingWithItsDevices) {
  const auto v = judge(rails_run({"device=3,percent=40"}));
  ASSERT_EQ(accused_rails(v), std::vector<std::string>{"cluster split cluster"});
  EXPECT_THAT(v.findings[0].text, HasSubstr("rail 3"));
  EXPECT_EQ(v.findings[0].members.size(), 32U);
  EXPECT_EQ(v.findings[0].members.front(), "sim00/gpu3");
  EXPECT_TRUE(
      accused_rails(judge(rails_run({"device=3,percent=20"}))).empty());  // rails may differ by design
  EXPECT_TRUE(
      accused_rails(judge(rails_run({"device=0+1+3,percent=40"}))).empty());  // which of them is the odd one?
}

/// Nothing was said of them where no pairs were measured.
TEST(VerdictRails, MoreThanHalfOfTheRailsInGroupsAreANote) {
  const auto v = judge(rails_run({"device=0+1+3,percent=40"}));
  EXPECT_TRUE(accused_rails(v).empty());
  const auto* note = find_kind(v, "split");
  ASSERT_NE(note, nullptr);
  EXPECT_THAT(note->text, HasSubstr("rails 0, 1, 3 "));
  EXPECT_EQ(note->members.size(), 96U);
  EXPECT_NEAR(*note->deficit, 0.4, 0.03);
  EXPECT_EQ(find_kind(judge(rails_run({})), "split"), nullptr);
}

TEST(VerdictRails, HealthyRailsAccuseNobody) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed)
    for (const int nodes : {8, 16, 64})
      EXPECT_TRUE(accused_rails(judge(rails_run({}, nodes, seed))).empty()) << nodes << " " << seed;
}

/// Pairs of the NICs of equal numbers.
simulate::Spec pairs_of(std::int64_t nodes, std::int64_t nics, std::int64_t leaves,
                        const std::vector<std::string>& faults, std::uint64_t seed = 1) {
  simulate::Spec spec;
  spec.nodes = nodes;
  spec.devices_per_node = nics;
  spec.leaves = leaves;
  spec.seed = seed;
  spec.metrics = simulate::pick_metrics({"p2p"});
  for (const std::string& fault : faults) spec.faults.push_back(simulate::parse_fault("slow:" + fault));
  return spec;
}

/// Judged with retests; `rate_of_nic1`: its nominal rate, if it is not that of the others.
results::VerdictData judged_pairs(std::int64_t nodes, std::int64_t nics, std::int64_t leaves,
                                  const std::vector<std::string>& faults, std::uint64_t seed = 1,
                                  double rate_of_nic1 = 0) {
  const auto spec = pairs_of(nodes, nics, leaves, faults, seed);
  auto r = simulate::screen(spec);
  r.info.injected = false;
  auto& nics_table = r.inventory["nic"];
  for (std::size_t i = 0; rate_of_nic1 > 0 && i < nics_table.entity.size(); ++i)
    if (r.entities[static_cast<std::size_t>(nics_table.entity[i])].name.ends_with("/nic1"))
      nics_table.number[results::inventory::rate][i] = rate_of_nic1;
  simulate::run_retests(r, spec, verdict::options_from(r));
  return judge(r);
}

/// The state and the words of the only finding.
void expect_one(const results::VerdictData& v, const std::string& severity, const std::string& text,
                const std::vector<std::string>& members) {
  std::vector<const results::Finding*> told;
  for (const auto& f : v.findings)
    if (f.severity != "INFO") told.push_back(&f);
  ASSERT_EQ(told.size(), 1U) << (told.empty() ? "" : told.back()->text);
  EXPECT_EQ(told[0]->severity, severity);
  EXPECT_THAT(told[0]->text, HasSubstr(text));
  if (!members.empty()) {
    EXPECT_EQ(told[0]->members, members);
  }
}

TEST(VerdictRails, ADeadRailIsNamedByItsPairs) {
  // Half of all links, at 23 and 24 nodes on both sides of where populations are judged otherwise.
  for (const std::int64_t nodes : {23, 24, 40})
    expect_one(judged_pairs(nodes, 2, 0, {"nic=1,percent=99.9"}), "FAIL", "cluster: rail 1 ", {});
}

TEST(VerdictRails, ItsSwitchesAreNamedWhereItHasThemForItself) {
  for (const double percent : {55.0, 99.9})
    expect_one(judged_pairs(24, 8, 16, {"nic=1,percent=" + std::to_string(percent)}), "FAIL", "rail 1 ",
               {"switch:L1", "switch:L9"});
  const auto v = judged_pairs(24, 4, 2, {"nic=3,percent=80"});
  ASSERT_FALSE(v.findings.empty());
  EXPECT_EQ(v.findings[0].members.size(), 24U) << "switches that other rails use, too";
}

TEST(VerdictRails, ARailSlowByLessThanAFaultIsOneWarning) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    EXPECT_EQ(judged_pairs(16, 4, 8, {}, seed).state, "PASS") << seed;
    for (const char* percent : {"7", "15", "28"})
      for (const std::int64_t nodes : {5, 6, 12, 24}) {
        SCOPED_TRACE(std::to_string(nodes) + " nodes, " + percent + " %, seed " + std::to_string(seed));
        const auto v = judged_pairs(nodes, 2, 0, {"nic=1,percent=" + std::string(percent)}, seed);
        const bool missed_floor = std::string(percent) == "28";
        expect_one(v, v.state == "FAIL" && missed_floor ? "FAIL" : "WARN", "cluster: rail 1 ", {});
      }
    // A little is a note, and accuses no pair.
    for (const auto& f : judged_pairs(12, 2, 0, {"nic=1,percent=3"}, seed).findings)
      EXPECT_EQ(f.severity, "INFO") << f.text;
  }
  expect_one(judged_pairs(40, 2, 0, {"nic=1,percent=40"}), "FAIL", "rail 1 ", {});
}

std::vector<std::string> failed_in(const results::VerdictData& v) {
  std::vector<std::string> names;
  for (const auto& f : v.findings)
    if (f.severity == "FAIL") names.push_back(f.name);
  return names;
}

TEST(VerdictRails, AFaultBesideASlowRailIsNamedToo) {
  using ::testing::Contains;
  using ::testing::UnorderedElementsAre;
  const std::string rail = "nic=1,percent=";
  EXPECT_THAT(failed_in(judged_pairs(16, 4, 8, {rail + "80", "node=5,nic=2,percent=40"})),
              UnorderedElementsAre("cluster", "sim05/nic2"));
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    const auto whole = judged_pairs(
        16, 4, 0,
        {rail + "40", "node=3,nic=0,percent=20", "node=3,nic=2,percent=20", "node=3,nic=3,percent=20"}, seed);
    EXPECT_THAT(failed_in(whole), Contains("sim03")) << "in all its other rails";
    EXPECT_THAT(failed_in(judged_pairs(16, 2, 0, {rail + "60", "node=3,nic=0,percent=25"}, seed)),
                Contains("sim03/nic0"));
    EXPECT_THAT(failed_in(judged_pairs(6, 2, 0, {rail + "60", "node=3,nic=1,percent=99"}, seed)),
                UnorderedElementsAre("cluster", "sim03/nic1"))
        << "on the slow rail itself";
    EXPECT_THAT(failed_in(judged_pairs(32, 4, 16, {rail + "60", "leaf=1,percent=30"}, seed)),
                UnorderedElementsAre("cluster", "switch:L1"));
  }
}

TEST(VerdictRails, ARailOfWhichSomeNicsAreSoundIsNone) {
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    const auto v = judged_pairs(6, 2, 0, {"node=0-3,nic=1,percent=60"}, seed);
    for (const auto& f : v.findings) EXPECT_THAT(f.text, Not(HasSubstr("rail 1"))) << seed;
    EXPECT_NE(v.state, "PASS");
  }
}

TEST(VerdictRails, NicsOfAnotherRateAreAnotherKindOfRail) {
  const auto told = [](double rate) {
    std::size_t rails = 0;
    for (const auto& f : judged_pairs(16, 2, 0, {"nic=1,percent=60"}, 1, rate).findings)
      rails += f.text.find("rail 1 ") != std::string::npos ? 1 : 0;
    return rails;
  };
  EXPECT_EQ(told(20e9), 0U);
  EXPECT_EQ(told(0), 1U) << "of equal ones it is slow";
}

TEST(VerdictRails, OfRanksARailIsAFaultOnlyWhereItIsHalfAsFast) {
  for (const double percent : {40.0, 60.0}) {
    auto r = simulate::screen(pairs_of(16, 2, 0, {"nic=1,percent=" + std::to_string(percent)}));
    r.info.injected = false;
    r.inventory.clear();
    for (auto& entity : r.entities)
      if (entity.kind == "nic") entity.kind = "device";
    const auto v = judge(r);
    const auto rail = std::ranges::find_if(
        v.findings, [](const auto& f) { return f.text.find("rail ") != std::string::npos; });
    ASSERT_NE(rail, v.findings.end());
    EXPECT_EQ(rail->severity, percent < 50 ? "WARN" : "FAIL");
  }
}

TEST(VerdictRails, MoreThanHalfOfTheRailsAreOneFinding) {
  // 60 % is below the floor of the NICs.
  for (const char* percent : {"8", "60"})
    expect_one(judged_pairs(16, 4, 0, {"nic=1-3,percent=" + std::string(percent)}),
               std::string(percent) == "60" ? "FAIL" : "WARN", "cluster: rails 1, 2, 3 ", {});
}

}  // namespace
}  // namespace assay
