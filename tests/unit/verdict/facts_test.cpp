// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "results/described.hpp"
#include "tests/unit/fabricate.hpp"
#include "verdict/retest/retest.hpp"

namespace assay {
namespace {

using namespace fabricate;
using ::testing::HasSubstr;

constexpr double nan_value = results::not_taken;

TEST(VerdictFacts, MiscompareNamesDeviceAddressAndBits) {
  auto r = healthy();
  first_case(r).state = results::CaseState::fail;
  r.errors.push_back(
      {"gemm/fp32-n2048-together", row_named(r, "node2/cores0-1"), 4711, 0xff, 0xfe, 0xfd, 1.0});
  const auto v = judge(r);
  EXPECT_EQ(v.state, "FAIL");
  EXPECT_EQ(v.exit_code, 2);
  EXPECT_EQ(v.accounting.failed, 1);
  ASSERT_EQ(v.findings.size(), 1U);
  const auto& f = v.findings[0];
  EXPECT_EQ(f.kind, "corrupt");
  EXPECT_EQ(f.claim, "fact");
  EXPECT_EQ(f.name, "node2/cores0-1");
  EXPECT_EQ(f.id, "id-node2/cores0-1");
  EXPECT_EQ(f.evidence, "/errors");
  for (const char* part : {"rank 2", "4711", "expected 0x00000000000000ff", "actual 0x00000000000000fe",
                           "xor 0x0000000000000001", "reread 0x00000000000000fd"}) {
    EXPECT_THAT(f.text, HasSubstr(part));
  }
  EXPECT_EQ(state_of(r, v, "node2"), "FAIL");
  EXPECT_EQ(state_of(r, v, "node1"), "PASS");
}

TEST(VerdictFacts, WrongWordsOfAFileNameItsDirectory) {
  auto r = healthy();
  first_case(r).state = results::CaseState::fail;
  r.errors.push_back({first_case(r).path(), row_named(r, "node2"), 4096, 1, 2, 2, 1.0});
  first_case(r).parameters["path"] = "tcp";  // of messages
  EXPECT_THAT(judge(r).findings.at(0).text, HasSubstr("in " + first_case(r).path() + ", first at 4096"));
  first_case(r).parameters["path"] = "/scratch";
  EXPECT_THAT(judge(r).findings.at(0).text,
              HasSubstr("in " + first_case(r).path() + " (/scratch), first at 4096"));
}

TEST(VerdictFacts, ErrorsMetricAloneFails) {
  auto r = healthy();
  results::Metric errors{"errors", "count",     results::Better::lower, true, results::Role::metric,
                         false,    {0, 0, 0, 3}};
  first_case(r).metrics.push_back(errors);
  const auto v = judge(r);
  EXPECT_EQ(v.state, "FAIL");
  ASSERT_NE(find_kind(v, "corrupt"), nullptr);
  EXPECT_EQ(find_kind(v, "corrupt")->name, "node3/cores0-1");
  EXPECT_EQ(find_kind(v, "corrupt")->value, 3.0);
}

TEST(VerdictFacts, FailedCaseWithoutRecordStillFails) {
  auto r = healthy();
  first_case(r).state = results::CaseState::fail;
  first_case(r).reason = "sum differs";
  const auto v = judge(r);
  EXPECT_EQ(v.state, "FAIL");
  EXPECT_THAT(v.findings[0].text, HasSubstr("sum differs"));
}

void add_digests(results::Results& r, std::vector<std::uint64_t> values) {
  results::IntegerArray a{"digest", {"entity"}, {values.size()}, values};
  first_case(r).arrays.push_back(a);
}

TEST(VerdictFacts, DigestMajorityNamesTheDeviatingDevice) {
  auto r = healthy();
  add_digests(r, {5, 5, 6, 5});
  const auto v = judge(r);
  EXPECT_EQ(v.state, "FAIL");
  ASSERT_EQ(v.findings.size(), 1U);
  EXPECT_EQ(v.findings[0].name, "node2/cores0-1");
  EXPECT_EQ(v.findings[0].kind, "corrupt");
}

TEST(VerdictFacts, ADigestThatWasNotComputedVotesForNothing) {
  auto r = healthy();
  add_digests(r, {5, 5, results::no_digest, 5});
  EXPECT_EQ(judge(r).state, "PASS");
}

TEST(VerdictFacts, DigestTieAsksForReplay) {
  auto r = healthy();
  add_digests(r, {5, 5, 6, 6});
  const auto v = judge(r);
  EXPECT_EQ(v.state, "INCONCLUSIVE");
  EXPECT_THAT(all_reasons(v), HasSubstr("replay"));
  EXPECT_EQ(count_severity(v, "FAIL"), 0U);
}

/// Two nodes of one device that disagree, each with the inputs' name, and what the verdict asks for then.
results::Results two_that_disagree() {
  auto r = healthy(2);
  add_digests(r, {5, 6});
  first_case(r).parameters["inputs"] = "0123";
  return r;
}

void replay(results::Results& r, std::vector<std::uint64_t> digests, const std::string& inputs = "0123") {
  auto again = first_case(r);
  again.name += ".c1";
  again.parameters["inputs"] = inputs;
  again.arrays[0].values = std::move(digests);
  r.cases.push_back(again);
}

TEST(VerdictFacts, TwoDifferentDigestsAreBothNamedAndRepeated) {
  auto r = two_that_disagree();
  const auto v = judge(r);
  EXPECT_EQ(v.state, "INCONCLUSIVE");
  const auto* f = find_kind(v, "corrupt");
  ASSERT_NE(f, nullptr);
  EXPECT_EQ(f->members, (std::vector<std::string>{"node0/cores0-1", "node1/cores0-1"}));
  EXPECT_THAT(f->text,
              HasSubstr("between node0/cores0-1 and node1/cores0-1 without a majority: replay the case"));
  const auto asked = verdict::retests(r, verdict::options_from(r));
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].name, "fp32-n2048-together");
  EXPECT_EQ(asked[0].candidates, first_case(r).entity);

  // The second has another result the next time: it is the one that cannot be trusted.
  auto unsteady = r;
  replay(unsteady, {5, 5});
  const auto found = judge(unsteady);
  EXPECT_EQ(found.state, "FAIL");
  ASSERT_EQ(found.findings.size(), 1U);
  EXPECT_EQ(found.findings[0].name, "node1/cores0-1");
  EXPECT_THAT(found.findings[0].text, HasSubstr("0x0000000000000006, then 0x0000000000000005"));
  EXPECT_TRUE(verdict::retests(unsteady, verdict::options_from(unsteady)).empty());

  // Each repeats itself: that is all two can tell, and nothing more is asked.
  auto steady = r;
  replay(steady, {5, 6});
  const auto open = judge(steady);
  EXPECT_EQ(open.state, "INCONCLUSIVE");
  ASSERT_EQ(open.findings.size(), 1U);
  EXPECT_THAT(open.findings[0].text, HasSubstr("a replay repeated both results"));
  EXPECT_TRUE(verdict::retests(steady, verdict::options_from(steady)).empty());
}

TEST(VerdictFacts, OtherInputsHaveOtherDigestsAndAccuseNobody) {
  auto r = healthy(2);
  add_digests(r, {5, 5});
  first_case(r).parameters["inputs"] = "0123";
  replay(r, {8, 8}, "4567");
  EXPECT_EQ(judge(r).state, "PASS");
  r.cases.back().parameters.erase("inputs");
  EXPECT_EQ(judge(r).state, "PASS");
  r.cases.back().parameters["inputs"] = "0123";
  EXPECT_EQ(judge(r).state, "FAIL");
}

TEST(VerdictFacts, DigestsOfOtherThreadCountsVoteApart) {
  auto r = healthy();
  add_digests(r, {5, 5, 5, 5});
  EXPECT_EQ(judge(r).state, "PASS");
  auto s = healthy();
  add_digests(s, {5, 5, 5, 6});
  results::IntegerArray threads{"threads", {"entity"}, {4}, {2, 2, 2, 4}};
  first_case(s).arrays.push_back(threads);
  EXPECT_EQ(judge(s).state, "PASS");
}

TEST(VerdictFacts, DigestsOfAnotherVectorUnitAreNotCompared) {
  auto r = healthy();
  add_digests(r, {5, 5, 5, 6});
  EXPECT_EQ(judge(r).state, "FAIL");
  first_case(r).arrays.push_back({"arithmetic", {"entity"}, {4}, std::vector<std::uint64_t>{7, 7, 7, 8}});
  const auto v = judge(r);
  EXPECT_EQ(v.state, "PASS");
  const auto alone = std::find_if(v.findings.begin(), v.findings.end(),
                                  [](const auto& f) { return f.kind == "uncovered" && f.suite == "gemm"; });
  ASSERT_NE(alone, v.findings.end());
  EXPECT_EQ(alone->severity, "INFO");
  const auto& name = r.entities[static_cast<std::size_t>(first_case(r).entity[3])].name;
  EXPECT_EQ(alone->text,
            name +
                " has no equal (processor, threads, math library, vector unit): digests of gemm that "
                "depend on these are compared with none");
}

TEST(VerdictFacts, DigestsOfEqualDevicesOrOfOneDeviceNeedNoNote) {
  for (const int devices : {1, 4}) {
    auto r = healthy(devices);
    add_digests(r, std::vector<std::uint64_t>(static_cast<std::size_t>(devices), 5));
    for (const auto& f : judge(r).findings) EXPECT_NE(f.kind, "uncovered") << f.text;
  }
}

TEST(VerdictFacts, DigestOfSamplesLeavesOutWhatWasNotTaken) {
  auto r = healthy();
  first_case(r).count = {2, 1, 2, 2};
  results::IntegerArray a{"digest", {"entity", "sample"}, {4, 2}, {7, 8, 7, 0, 7, 8, 7, 8}};
  first_case(r).arrays.push_back(a);
  EXPECT_EQ(judge(r).state, "PASS");
  first_case(r).count[1] = 2;
  EXPECT_EQ(judge(r).state, "FAIL");
}

void add_counter(results::Results& r, const std::string& entity, const std::string& counter, double before,
                 double after) {
  r.counters.push_back({"gemm/fp32-n2048-together", row_named(r, entity), counter, before, after});
}

TEST(VerdictFacts, UncorrectableCountersFail) {
  for (const char* counter : {"edac_ue", "edac_ue:dimm3", "aer_fatal", "mce"}) {
    auto r = healthy();
    add_counter(r, "node1", counter, 2, 3);
    const auto v = judge(r);
    EXPECT_EQ(v.state, "FAIL") << counter;
    EXPECT_EQ(v.findings[0].name, "node1");
    EXPECT_EQ(v.findings[0].kind, "counter");
    EXPECT_EQ(v.findings[0].value, 1.0);
  }
}

TEST(VerdictFacts, CorrectableCountersWarnWithNumbers) {
  for (const char* counter :
       {"edac_ce", "aer_nonfatal", "aer_correctable", "rx_errors", "rx_crc_errors", "mce_threshold"}) {
    auto r = healthy();
    add_counter(r, "node1", counter, 2, 9);
    const auto v = judge(r);
    EXPECT_EQ(v.state, "WARN") << counter;
    EXPECT_EQ(v.exit_code, 0);
    EXPECT_THAT(v.findings[0].text, HasSubstr("rose by 7 (2 to 9)"));
  }
  auto r = healthy();
  add_counter(r, "node1", "throttle_package", 0, 4);
  EXPECT_EQ(judge(r).findings.at(0).kind, "throttled");
}

TEST(VerdictFacts, ErrorsAfterAResetAreAWarning) {
  for (const auto& [counter, state] : {std::pair("edac_ue", "WARN"), {"edac_ce", "PASS"}}) {
    auto r = healthy();
    add_counter(r, "node1", counter, 9, 2);
    const auto v = judge(r);
    EXPECT_EQ(v.state, state) << counter;
    EXPECT_THAT(find_kind(v, "counter")->text, HasSubstr("during the run, up to 2 since"));
  }
}

TEST(VerdictFacts, TrafficAndStandingCountersAreSilent) {
  auto r = healthy();
  add_counter(r, "node1", "rx_bytes", 0, 1e9);
  add_counter(r, "node1", "edac_ce", 12, 12);
  EXPECT_EQ(judge(r).state, "PASS");
}

TEST(VerdictFacts, UnreadableCounterIsInconclusive) {
  auto r = healthy();
  add_counter(r, "node1", "edac_ce", nan_value, nan_value);
  EXPECT_EQ(judge(r).state, "PASS");
  auto required = r;
  required.config["require"] = Json::array({"edac"});
  EXPECT_EQ(judge(required).state, "INCONCLUSIVE");
  EXPECT_THAT(all_reasons(judge(required)), HasSubstr("edac_ce"));
  add_counter(r, "node2", "edac_ce", 1, nan_value);
  const auto v = judge(r);
  EXPECT_EQ(v.state, "INCONCLUSIVE");
  EXPECT_THAT(all_reasons(v), HasSubstr("unreadable"));
  EXPECT_EQ(state_of(r, v, "node2"), "INCONCLUSIVE");
}

TEST(VerdictFacts, RequiredNameThatNothingHasIsInconclusive) {
  auto r = healthy();
  r.config["require"] = Json::array({"power"});
  EXPECT_EQ(judge(r).state, "INCONCLUSIVE");
  r.config["require"] = Json::array({"gemm", "throughput"});
  EXPECT_EQ(judge(r).state, "PASS");
}

TEST(VerdictFacts, SelftestMustCatchEverything) {
  auto r = healthy();
  r.selftest.clear();
  EXPECT_EQ(judge(r).state, "INCONCLUSIVE");
  r.selftest.push_back({"gemm", 1, 1, 0, 1, row_named(r, "node1/cores0-1")});
  const auto v = judge(r);
  EXPECT_EQ(v.state, "INCONCLUSIVE");
  EXPECT_THAT(all_reasons(v), HasSubstr("0 located"));
  r.selftest.assign(1, {"gemm", 0, 0, 0, 0, -1});
  EXPECT_EQ(judge(r).state, "INCONCLUSIVE");
  r.selftest.assign(1, {"memory", 1, 1, 1, 1, -1});
  EXPECT_EQ(judge(r).state, "INCONCLUSIVE");
  r.selftest.assign(1, {"gemm", 2, 2, 2, 2, -1});
  EXPECT_EQ(judge(r).state, "PASS");
}

TEST(VerdictFacts, EverySuiteNeedsAPassedSelfTest) {
  auto r = healthy();
  for (auto& row : r.plan) row.checkers = "";
  auto v = judge(r);
  EXPECT_EQ(v.state, "INCONCLUSIVE");
  EXPECT_THAT(all_reasons(v), HasSubstr("declares no self-test"));
  for (auto& row : r.plan) row.checkers = "sums,gemm";
  v = judge(r);
  EXPECT_EQ(v.state, "INCONCLUSIVE");
  EXPECT_THAT(all_reasons(v), HasSubstr("self-test of the sums checker is missing"));
  r.selftest.push_back({"sums", 1, 1, 1, 1, -1});
  EXPECT_EQ(judge(r).state, "PASS");
  r.selftest.clear();
  for (auto& row : r.plan) row.checkers = results::no_checks;
  EXPECT_EQ(judge(r).state, "PASS");
}

TEST(VerdictFacts, WhatALaunchDidNotCoverForAKnownReasonIsANote) {
  auto r = healthy();
  r.events.push_back({0, -1, "launch-info", "cases use 64.00 MiB of memory per rank", "uncovered"});
  const auto v = judge(r);
  EXPECT_EQ(v.state, "PASS");
  ASSERT_NE(find_kind(v, "uncovered"), nullptr);
  EXPECT_EQ(find_kind(v, "uncovered")->severity, "INFO");
  r.events.front().finding = "mismatch";
  EXPECT_EQ(find_kind(judge(r), "mismatch"), nullptr) << "the inventory judges what nodes have";
}

TEST(VerdictFacts, LaunchEventsBecomeFindings) {
  auto r = healthy();
  r.events.push_back({0, row_named(r, "node1"), "launch-warn", "node1: 2 of 4 cores", "uncovered"});
  auto v = judge(r);
  EXPECT_EQ(v.state, "WARN");
  ASSERT_NE(find_kind(v, "uncovered"), nullptr);
  EXPECT_EQ(find_kind(v, "uncovered")->name, "node1");
  auto all = verdict::options_from(r);
  all.require = {"coverage"};
  EXPECT_EQ(verdict::judge(r, all).state, "INCONCLUSIVE");
  EXPECT_EQ(verdict::judge(healthy(), all).state, "PASS") << "nothing was left out";
  r.events.push_back({0, -1, "launch-inconclusive", "the launch has 4 nodes, expected 5", "missing"});
  v = judge(r);
  EXPECT_EQ(v.state, "INCONCLUSIVE");
  ASSERT_NE(find_kind(v, "missing"), nullptr);
  r.events.push_back({0, -1, "launch-fail", "a device", "missing"});
  EXPECT_EQ(judge(r).state, "FAIL");
  auto hung = healthy();
  hung.events.push_back({9, row_named(hung, "node2"), "hang", "rank 2 did not arrive"});
  v = judge(hung);
  EXPECT_EQ(v.state, "INCONCLUSIVE");
  EXPECT_EQ(find_kind(v, "hang")->action, "TRIAGE");
}

TEST(VerdictFacts, ANodeThatDidNotAnswerIsLost) {
  auto r = healthy();
  r.events.push_back({0, row_named(r, "node1"), "launch-inconclusive", "node1: did not answer", "lost"});
  const auto v = judge(r);
  EXPECT_EQ(v.state, "INCONCLUSIVE");
  EXPECT_EQ(state_of(r, v, "node1"), "INCONCLUSIVE");
  ASSERT_NE(find_kind(v, "lost"), nullptr);
  EXPECT_EQ(find_kind(v, "lost")->action, "TRIAGE");
}

TEST(VerdictFacts, ARankThatIsLostInTwoLaunchesFailsItsDevice) {
  const std::string device = "node2/cores0-1";
  const auto lost = [&](const char* kind, const char* text) {
    auto r = healthy();
    r.events.push_back({0, row_named(r, device), "lost", "rank 2 is gone"});
    r.events.push_back({0, row_named(r, device), kind, text});
    results::complete_launch_events(r.events);
    return judge(r);
  };
  EXPECT_EQ(lost("lost", "rank 2 is gone").state, "INCONCLUSIVE") << "both in this launch";
  for (const auto& v :
       {lost("earlier-lost", "rank 2 was killed"), lost("hang", "in an earlier launch: rank 2 was killed")}) {
    EXPECT_EQ(v.state, "FAIL");
    EXPECT_TRUE(std::any_of(v.findings.begin(), v.findings.end(), [&](const auto& f) {
      return f.name == device && f.text.find("earlier launch: rank 2 was killed") != std::string::npos;
    })) << all_reasons(v);
  }
}

TEST(VerdictFacts, LaunchEventsOfOlderFilesNameTheirFindingInTheText) {
  auto r = healthy();
  r.events.push_back({0, row_named(r, "node1"), "launch-warn", "uncovered: node1: 2 of 4 cores"});
  r.events.push_back({0, -1, "launch-fail", "oversubscribed: 4 ranks on 2 cores"});
  r.events.push_back({0, -1, "launch-warn", "node2: no such word"});
  r.events.push_back({0, -1, "miscompare", "missing: no launch event"});
  results::complete_launch_events(r.events);
  EXPECT_EQ(r.events[0].finding, "uncovered");
  EXPECT_EQ(r.events[0].text, "node1: 2 of 4 cores");
  EXPECT_EQ(r.events[1].finding, "oversubscribed");
  EXPECT_EQ(r.events[2].finding, "mismatch");
  EXPECT_EQ(r.events[2].text, "node2: no such word");
  EXPECT_EQ(r.events[3].finding, "");
  const auto v = judge(r);
  EXPECT_NE(find_kind(v, "uncovered"), nullptr);
  ASSERT_NE(find_kind(v, "mismatch"), nullptr);
  EXPECT_NE(find_kind(v, "mismatch")->text.find("oversubscribed: 4 ranks"), std::string::npos);
}

}  // namespace
}  // namespace assay
