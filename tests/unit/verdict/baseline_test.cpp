// SPDX-License-Identifier: Apache-2.0
#include "verdict/baseline.hpp"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "base/error.hpp"
#include "baseline_rig.hpp"
#include "simulate/simulate.hpp"
#include "verdict/references.hpp"
#include "verdict/retest/retest.hpp"

namespace assay {
namespace {

using namespace fabricate;
using baseline_rig::baseline;
using baseline_rig::judged;
using results::Results;
using testing::HasSubstr;
using testing::Not;

/// A run of its own of nodes whose samples lie in three blocks over 100 s.
Results one(int nodes, double rate, const std::string& id = "one") {
  auto r = healthy(nodes, 1, rate);
  r.info.run_id = id;
  for (auto& c : r.cases) {
    for (std::size_t s = 0; s < c.block.size(); ++s) c.block[s] = static_cast<std::int32_t>(s / 2);
    for (std::size_t s = 0; s < c.t.size(); ++s) c.t[s] = 20.0 * static_cast<double>(s % c.block.size());
  }
  return r;
}

TEST(VerdictBaseline, ServesANodeThatIsTestedAlone) {
  const auto fleet = baseline(healthy(32));
  const auto good = judged(one(1, 0.99e11), fleet);
  EXPECT_EQ(good.state, "PASS");
  EXPECT_THAT(good.basis, HasSubstr("baseline 1"));
  const auto bad = judged(one(1, 0.9e11), fleet);
  EXPECT_EQ(bad.state, "FAIL");
  ASSERT_EQ(bad.findings.size(), 1U);
  EXPECT_EQ(bad.findings[0].name, "node0/cores0-1");
  EXPECT_EQ(bad.findings[0].reference_kind, "baseline");
  EXPECT_EQ(bad.findings[0].claim, "magnitude");
  EXPECT_EQ(bad.findings[0].confirmed_by, "blocks");
  EXPECT_NEAR(*bad.findings[0].deficit, 0.1, 0.005);
  EXPECT_EQ(bad.findings[0].controls, 32);
  // Under the delta of GEMM (7 %): a warning.
  const auto slower = judged(one(1, 0.95e11), fleet);
  EXPECT_EQ(slower.state, "WARN");
}

TEST(VerdictBaseline, BlocksThatWereFastConfirmNothing) {
  const auto fleet = baseline(healthy(32));
  auto r = one(1, 0.9e11);
  for (auto& c : r.cases)
    for (std::size_t s = 4; s < 6; ++s) {
      c.block[s - 1] = 0, c.block[s] = static_cast<std::int32_t>(s - 3);
      c.metrics[0].values[s] = 1e11;
    }
  const auto v = judged(r, fleet);
  EXPECT_EQ(v.state, "WARN") << "slow in its first block alone, in four samples of six";
  EXPECT_THAT(v.findings.at(0).text, HasSubstr("not confirmed"));
}

TEST(VerdictBaseline, NeedsAConfirmationOrSize) {
  const auto fleet = baseline(healthy(32));
  auto quick = one(1, 0.9e11);
  for (auto& c : quick.cases) c.t.assign(c.t.size(), 0.0);
  const auto open = judged(quick, fleet);
  EXPECT_EQ(open.state, "WARN");
  EXPECT_THAT(open.findings.at(0).text, HasSubstr("not confirmed"));
  auto retest = quick.cases[0];
  retest.name += ".c1";
  quick.cases.push_back(retest);
  EXPECT_EQ(judged(quick, fleet).findings.at(0).confirmed_by, "retest");
  for (double& v : quick.cases.back().metrics[0].values) v = 1e11;
  EXPECT_EQ(count_severity(judged(quick, fleet), "FAIL"), 0U);
  auto half = one(1, 0.5e11);
  half.info.level = "smoke";
  EXPECT_EQ(judged(half, fleet).findings.at(0).confirmed_by, "size");
  // One sample may be anything: not even half the rate is a fault until it was measured again.
  auto once = half;
  first_case(once).count.assign(first_case(once).count.size(), 1);
  EXPECT_EQ(count_severity(judged(once, fleet), "FAIL"), 0U);
  EXPECT_EQ(count_severity(judged(once, fleet), "WARN"), 1U);
  auto second = first_case(half);
  second.name += ".c1";
  once.cases.push_back(second);
  EXPECT_EQ(count_severity(judged(once, fleet), "FAIL"), 1U);
  for (double& v : once.cases.back().metrics[0].values) v = 1.1e11;
  EXPECT_EQ(count_severity(judged(once, fleet), "WARN"), 0U);
  auto smoke = one(1, 0.85e11);
  smoke.info.level = "smoke";
  EXPECT_EQ(count_severity(judged(smoke, fleet), "FAIL"), 0U);
  // However often it is measured again.
  auto third = smoke.cases[0];
  third.name += ".c1";
  smoke.cases.push_back(third);
  EXPECT_EQ(count_severity(judged(smoke, fleet), "FAIL"), 0U);
  smoke.info.level = "quick";
  EXPECT_EQ(count_severity(judged(smoke, fleet), "FAIL"), 1U);
}

TEST(VerdictBaseline, SuspectsAreRetested) {
  auto r = one(12, 1e11);
  auto& c = first_case(r);
  c.t.assign(c.t.size(), 0.0);
  for (std::size_t s = 0; s < c.samples(); ++s) c.metrics[0].values[3 * c.samples() + s] *= 0.9;
  auto options = verdict::options_from(r);
  options.baseline = baseline(healthy(32));
  const auto asked = verdict::retests(r, options);
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].candidates, std::vector{c.entity[3]});
  EXPECT_GE(asked[0].controls.size(), 8U);
  EXPECT_EQ(std::count(asked[0].controls.begin(), asked[0].controls.end(), c.entity[3]), 0);
  auto alone = one(1, 0.9e11);
  first_case(alone).t.assign(first_case(alone).t.size(), 0.0);
  const auto again = verdict::retests(alone, options);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].candidates, std::vector{first_case(alone).entity[0]});
  EXPECT_TRUE(again[0].controls.empty());
  // Measured: nothing is left to ask for.
  auto retest = first_case(alone);
  retest.name += ".c1";
  alone.cases.push_back(retest);
  EXPECT_TRUE(verdict::retests(alone, options).empty());
  EXPECT_TRUE(verdict::retests(one(1, 0.99e11), options).empty());
}

TEST(VerdictBaseline, SeveralMetricsOfOnePartAreOneFinding) {
  const auto with = [](int nodes, double triad, double copy) {
    auto r = one(nodes, 1e11, "fleet of " + std::to_string(nodes));
    for (const auto& [name, rate] : {std::pair("triad-together", triad), std::pair("copy-together", copy)}) {
      const auto devices = rows_of_kind(r, "device");
      add_case(r, "memory", name, "bandwidth", "B/s", results::Better::higher, "device", devices,
               std::vector<double>(devices.size(), rate));
    }
    add_selftest(r, "memory");
    return r;
  };
  const auto fleet = baseline(with(32, 1e11, 1e11));
  auto now = with(1, 0.9e11, 0.85e11);
  const auto v = judged(now, fleet);
  ASSERT_EQ(v.findings.size(), 1U);
  EXPECT_THAT(v.findings[0].metric, HasSubstr("copy-together"));
  EXPECT_THAT(v.findings[0].text,
              HasSubstr("and so in 1 other metric of memory: triad-together:bandwidth 10."));
  // Confirmed in one of them: that one leads, whatever the size of the other.
  auto retest = *std::find_if(now.cases.begin(), now.cases.end(),
                              [](const auto& c) { return c.name == "triad-together"; });
  retest.name += ".c1";
  now.cases.push_back(retest);
  const auto led = judged(now, fleet);
  ASSERT_EQ(led.findings.size(), 1U);
  EXPECT_EQ(led.findings[0].severity, "FAIL");
  EXPECT_THAT(led.findings[0].metric, HasSubstr("triad-together"));
  // So are those of a whole fleet.
  const auto all = judged(with(8, 0.9e11, 0.85e11), fleet);
  ASSERT_EQ(all.findings.size(), 1U);
  EXPECT_EQ(all.findings[0].level, "cluster");
  EXPECT_EQ(all.findings[0].members.size(), 8U);
  EXPECT_THAT(all.findings[0].text,
              HasSubstr("and so in 1 other metric of memory: triad-together:bandwidth 10."));
}

TEST(VerdictBaseline, TheMedianPartIsTheReferenceNotTheBadOnes) {
  auto fleet = healthy(32);
  auto& c = first_case(fleet);
  for (std::size_t i = 0; i < 5 * c.samples(); ++i) c.metrics[0].values[i] *= 0.5;
  EXPECT_EQ(judged(one(1, 0.9e11), baseline(fleet)).state, "FAIL");
}

TEST(VerdictBaseline, PartsOfItThatDisagreeAreToldOnce) {
  for (const int nodes : {2, 5, 32}) {
    auto fleet = healthy(nodes);
    EXPECT_EQ(find_kind(judged(one(4, 1e11), baseline(fleet)), "mismatch"), nullptr) << nodes;
    auto& c = first_case(fleet);
    const std::size_t slow = nodes == 32 ? 10 : 1;
    for (std::size_t i = 0; i < slow * c.samples(); ++i) c.metrics[0].values[i] *= 0.7;
    const auto v = judged(one(4, 1e11), baseline(fleet));
    ASSERT_NE(find_kind(v, "mismatch"), nullptr) << nodes;
    EXPECT_THAT(find_kind(v, "mismatch")->text,
                testing::ContainsRegex("its " + std::to_string(nodes) + " parts differ by (29|30)[.]"));
    EXPECT_EQ(find_kind(v, "mismatch")->severity, "WARN");
  }
}

TEST(VerdictBaseline, AUniformlyBadFleetIsOneFinding) {
  const auto v = judged(one(8, 0.85e11), baseline(healthy(32)));
  EXPECT_EQ(v.state, "FAIL");
  ASSERT_EQ(v.findings.size(), 1U);
  EXPECT_EQ(v.findings[0].level, "cluster");
  EXPECT_EQ(v.findings[0].members.size(), 8U);
}

/// All lost 3 % and one lost 20 %, which is its own fault.
TEST(VerdictBaseline, AFaultOfOneIsNoneOfAFleetThatIsALittleSlower) {
  auto r = one(12, 0.97e11);
  auto& c = first_case(r);
  for (std::size_t i = 0; i < c.samples(); ++i) c.metrics[0].values[3 * c.samples() + i] *= 0.8;
  const auto v = judged(r, baseline(healthy(12)));
  EXPECT_EQ(state_of(r, v, "node3"), "FAIL");
  EXPECT_EQ(state_of(r, v, "node4"), "WARN");
  std::size_t faults = 0;
  for (const auto& f : v.findings) faults += f.severity == "FAIL" && f.reference_kind == "baseline" ? 1 : 0;
  EXPECT_EQ(faults, 1U);
}

TEST(VerdictBaseline, AFaultOfManyIsNoneOfTheManyThatAreALittleSlower) {
  auto r = one(64, 0.96e11);
  auto& c = first_case(r);
  for (std::size_t i = 0; i < 20 * c.samples(); ++i) c.metrics[0].values[i] *= 0.9 / 0.96;
  const auto v = judged(r, baseline(healthy(64)));
  EXPECT_EQ(state_of(r, v, "node19"), "FAIL");
  EXPECT_EQ(state_of(r, v, "node20"), "WARN");
  std::map<std::string, std::size_t> members;
  for (const auto& f : v.findings)
    if (f.reference_kind == "baseline") members[f.severity] = f.members.size();
  EXPECT_THAT(members, testing::ElementsAre(testing::Pair("FAIL", 20), testing::Pair("WARN", 44)));
}

/// Of a fleet that lost 12 % a few are measured again, and speak for the others.
TEST(VerdictBaseline, RetestsOfSomeStandForAFleetAsSlow) {
  auto r = one(12, 0.88e11);
  for (auto& c : r.cases) c.t.assign(c.t.size(), 0.0);
  const auto fleet = baseline(healthy(12));
  EXPECT_EQ(judged(r, fleet).state, "WARN");
  auto again = r.cases[0];
  again.name += ".c1";
  const std::size_t parts = 4, samples = parts * again.samples();
  again.entity.resize(parts), again.count.resize(parts);
  again.t.resize(samples), again.metrics[0].values.resize(samples);
  r.cases.push_back(again);
  const auto v = judged(r, fleet);
  EXPECT_EQ(v.state, "FAIL");
  EXPECT_EQ(v.findings.at(0).confirmed_by, "retest");
  EXPECT_EQ(state_of(r, v, "node11"), "FAIL");
  // Five of them at fault and three a little slower: each fault is told by itself.
  for (std::size_t part = 5; part < 12; ++part)
    for (std::size_t i = 0; i < again.samples(); ++i)
      r.cases.front().metrics[0].values[part * again.samples() + i] *= part < 8 ? 0.97 / 0.88 : 1 / 0.88;
  for (const auto& f : judged(r, fleet).findings)
    if (f.severity == "FAIL") {
      EXPECT_EQ(f.confirmed_by, f.name.starts_with("node4") ? "others" : "retest") << f.text;
    }
}

TEST(VerdictBaseline, SaysWhatItHasNoReferenceFor) {
  auto fleet = healthy(32);
  first_case(fleet).case_key = "another";
  const auto v = judged(one(4, 0.5e11), baseline(fleet));
  EXPECT_EQ(v.state, "INCONCLUSIVE");
  EXPECT_THAT(all_reasons(v), HasSubstr("no metric of this run"));
  ASSERT_NE(find_kind(v, "mismatch"), nullptr);
  EXPECT_THAT(find_kind(v, "mismatch")->text, HasSubstr("another case_key"));
  auto other = healthy(32);
  other.inventory["node"].entity = rows_of_kind(other, "node");
  other.inventory["node"].text["cpu_model"] = std::vector<std::string>(32, "Other CPU");
  EXPECT_THAT(find_kind(judged(one(4, 1e11), baseline(other)), "mismatch")->text,
              HasSubstr("no part of this model"));
}

/// Sets the processor of each node.
void set_models(Results& r, const std::vector<std::string>& models) {
  r.inventory["node"].entity = rows_of_kind(r, "node");
  r.inventory["node"].text["cpu_model"] = models;
}

TEST(VerdictBaseline, PartsOfAModelThatItLacksAreToldBesideThoseItHolds) {
  auto fleet = healthy(32);
  set_models(fleet, std::vector<std::string>(32, "A"));
  auto now = one(12, 1e11);
  set_models(now, {"A", "A", "A", "A", "A", "A", "A", "A", "A", "B", "B", "B"});
  const auto told = [](const results::VerdictData& v) {
    std::vector<std::string> texts;
    for (const auto& f : v.findings)
      if (f.reference_kind == "baseline") texts.push_back(f.severity + " " + f.text);
    return texts;
  };
  EXPECT_THAT(
      told(judged(now, baseline(fleet))),
      testing::ElementsAre("WARN baseline fleet.h5: no reference for 3 of 12 parts in "
                           "gemm/fp32-n2048-together:throughput: it has no part of their model (B x2)"));
  set_models(now, std::vector<std::string>(12, "A"));
  EXPECT_THAT(told(judged(now, baseline(fleet))), testing::IsEmpty());
}

TEST(VerdictBaseline, PartsThatDisagreeAreToldWhateverTheirModel) {
  auto fleet = healthy(32);
  std::vector<std::string> models(20, "A");
  models.resize(32, "B");
  set_models(fleet, models);
  auto& c = first_case(fleet);
  for (std::size_t i = 26 * c.samples(); i < 32 * c.samples(); ++i) c.metrics[0].values[i] *= 0.7;
  auto now = one(8, 1e11);
  set_models(now, {"A", "A", "A", "A", "A", "A", "B", "B"});
  std::vector<std::string> told;
  for (const auto& f : judged(now, baseline(fleet)).findings)
    if (f.reference_kind == "baseline") told.push_back(f.severity + " " + f.text);
  EXPECT_THAT(told, testing::ElementsAre(
                        testing::ContainsRegex("WARN baseline fleet.h5: its 12 parts differ by (29|30)[.]")));
}

/// Links between all nodes, of which the first `slow` have NICs of a quarter of the rate; those from slow to
/// fast nodes are the first or the last rows.
Results mixed_network(int nodes, int slow, bool last, const std::string& id) {
  auto r = cluster(nodes);
  r.info.run_id = id;
  std::vector<std::string> models;
  for (int n = 0; n < nodes; ++n) models.emplace_back(n < slow ? "slow NIC" : "fast NIC");
  set_models(r, models);
  std::vector<std::int32_t> rows, source, destination;
  std::vector<double> rates;
  for (const bool between : {!last, last})
    for (int a = 0; a < nodes; ++a)
      for (int b = 0; b < nodes; ++b) {
        if (a == b || (a < slow && b >= slow) != between) continue;
        const auto device = [&](int n) { return row_named(r, "node" + std::to_string(n) + "/cores0-1"); };
        source.push_back(device(a)), destination.push_back(device(b));
        rates.push_back(a < slow || b < slow ? 25e9 : 100e9);
        const std::string name = r.entities[static_cast<std::size_t>(source.back())].name + ">" +
                                 r.entities[static_cast<std::size_t>(destination.back())].name;
        rows.push_back(static_cast<std::int32_t>(r.entities.size()));
        r.entities.push_back({"link", "id-" + name, "path", name, 0, -1});
      }
  auto& c = add_case(r, "p2p", "bandwidth-uni-1048576", "bandwidth", "B/s", results::Better::higher, "link",
                     rows, rates);
  c.source = source;
  c.destination = destination;
  add_selftest(r, "p2p");
  return r;
}

TEST(VerdictBaseline, HoldsANodeAgainstThoseOfItsOwnModelWhateverTheOrderOfTheLinks) {
  for (const bool before : {false, true})
    for (const bool now : {false, true}) {
      const auto fleet = baseline(mixed_network(12, 4, before, "before"));
      std::set<std::string> strata;
      for (const auto& value : fleet->values) strata.insert(value.stratum);
      EXPECT_THAT(strata, testing::ElementsAre("across fast NIC x2 > fast NIC x2",
                                               "across slow NIC x2 > slow NIC x2"));
      const auto v = judged(mixed_network(12, 4, now, "now"), fleet);
      for (const auto& f : v.findings) EXPECT_NE(f.reference_kind, "baseline") << f.text;
    }
  // One alone of its model has links to others only.
  const auto fleet = baseline(mixed_network(12, 1, false, "before"));
  for (const auto& f : judged(mixed_network(12, 1, true, "now"), fleet).findings)
    EXPECT_NE(f.reference_kind, "baseline") << f.text;
}

TEST(VerdictBaseline, IsWeakerThanALimitAndKeptBesideIt) {
  auto r = one(4, 1e11);
  auto options = verdict::options_from(r);
  options.baseline = baseline(healthy(32));
  options.limits_name = "l.toml";
  options.limits_text = "[[limit]]\nmetric = \"gemm/*:throughput\"\nmin = \"50 GFLOP/s\"\n";
  EXPECT_THAT(verdict::judge(r, options).basis, HasSubstr("limits 4, baseline 0"));
}

TEST(VerdictBaseline, TheStoredOneRepeatsTheVerdict) {
  auto r = one(1, 0.9e11);
  const auto first = judged(r, baseline(healthy(32)));
  ASSERT_EQ(first.inputs["baseline"]["runs"][0]["run_id"], "test");
  EXPECT_FALSE(first.inputs["baseline"]["runs"][0]["hash"].get<std::string>().empty());
  r.verdict = first;
  r.verdict->inputs = Json::parse(first.inputs.dump());
  const auto second = verdict::judge(r, verdict::options_from(r));
  EXPECT_EQ(second.state, "FAIL");
  EXPECT_EQ(second.findings.at(0).text, first.findings.at(0).text);
  EXPECT_EQ(second.inputs, first.inputs);
  for (const char* field : {"values", "runs", "name"}) {
    auto bad = first.inputs["baseline"];
    bad[field] = 3;
    EXPECT_THROW(verdict::baseline_from(bad), Error) << field;
  }
}

TEST(VerdictBaseline, IsNeverTheRunItself) {
  const auto r = one(4, 1e11);
  EXPECT_THROW(judged(r, baseline(r)), Error);
}

}  // namespace
}  // namespace assay
