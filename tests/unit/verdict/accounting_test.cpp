// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/unit/fabricate.hpp"

namespace assay {
namespace {

using namespace fabricate;
using results::CaseState;
using ::testing::HasSubstr;

std::int64_t sum(const results::Accounting& a) {
  return a.passed + a.failed + a.skipped + a.error + a.incomplete;
}

TEST(VerdictAccounting, HealthyRunPasses) {
  const auto v = judge(healthy());
  EXPECT_EQ(v.state, "PASS");
  EXPECT_EQ(v.exit_code, 0);
  EXPECT_EQ(v.accounting.planned, 1);
  EXPECT_EQ(v.accounting.passed, 1);
  EXPECT_TRUE(v.findings.empty());
  EXPECT_THAT(v.basis, HasSubstr("peers only 4"));
}

TEST(VerdictAccounting, NothingMeasuredIsInconclusive) {
  const auto empty = judge(results::Results{});
  EXPECT_EQ(empty.state, "INCONCLUSIVE");
  EXPECT_EQ(empty.exit_code, 3);
  auto r = cluster(2);
  plan_only(r, "inventory", "node", false);
  EXPECT_EQ(judge(r).state, "INCONCLUSIVE");
}

TEST(VerdictAccounting, PlannedWithoutDataIsIncompleteAndNamed) {
  auto r = healthy();
  plan_only(r, "gemm", "fp64-n2048-together", true);
  const auto v = judge(r);
  EXPECT_EQ(v.state, "INCONCLUSIVE");
  EXPECT_EQ(v.accounting.planned, 2);
  EXPECT_EQ(v.accounting.incomplete, 1);
  EXPECT_EQ(v.accounting.required_missing, 1);
  EXPECT_EQ(sum(v.accounting), v.accounting.planned);
  EXPECT_THAT(all_reasons(v), HasSubstr("gemm/fp64-n2048-together"));
  EXPECT_EQ(state_of(r, v, "node0"), "INCONCLUSIVE");
}

TEST(VerdictAccounting, CasesThatDidNotRunAreOneReason) {
  auto r = healthy();
  for (const char* name : {"a", "b", "c", "d"}) plan_only(r, "gemm", name, true);
  plan_only(r, "gemm", "e", false);
  const auto v = judge(r);
  EXPECT_EQ(v.state, "INCONCLUSIVE");
  EXPECT_EQ(v.accounting.incomplete, 5);
  EXPECT_EQ(v.accounting.required_missing, 4);
  EXPECT_THAT(v.reasons, ::testing::ElementsAre("4 required cases did not run, the first: gemm/a",
                                                "optional case gemm/e did not run"));
}

/// Nodes that a case was not to measure do not lack it.
TEST(VerdictAccounting, AnIncompleteCaseIsAGapOfThePartsItWasToMeasure) {
  auto r = healthy();
  auto devices = rows_of_kind(r, "device");
  const auto all = devices;
  devices.resize(2);
  auto& c = add_case(r, "gemm", "fp64-n2048-together", "throughput", "FLOP/s", results::Better::higher,
                     "device", devices, std::vector<double>(2, 1e11), 10, true);
  c.state = CaseState::incomplete;
  c.reason = "a rank was lost";
  const auto v = judge(r);
  EXPECT_EQ(v.state, "INCONCLUSIVE");
  EXPECT_EQ(state_of(r, v, "node0"), "INCONCLUSIVE");
  EXPECT_EQ(state_of(r, v, "node1"), "INCONCLUSIVE");
  EXPECT_EQ(state_of(r, v, "node2"), "PASS");
  // More were planned than the file names: it may have been any.
  r.plan.back().entities = static_cast<std::int64_t>(all.size()) + 8;
  EXPECT_EQ(state_of(r, judge(r), "node2"), "INCONCLUSIVE");
}

TEST(VerdictAccounting, StatesOfCasesAddUp) {
  for (const auto state : {CaseState::skip, CaseState::incomplete, CaseState::error}) {
    auto r = healthy();
    first_case(r).state = state;
    first_case(r).reason = "because";
    const auto v = judge(r);
    EXPECT_EQ(v.state, "INCONCLUSIVE") << results::to_string(state);
    EXPECT_EQ(sum(v.accounting), 1);
    EXPECT_EQ(v.accounting.passed, 0);
    EXPECT_THAT(all_reasons(v), HasSubstr("gemm/fp32-n2048-together"));
    EXPECT_THAT(all_reasons(v), HasSubstr("because"));
  }
}

TEST(VerdictAccounting, BudgetSkipOfOpportunisticCaseIsNoGap) {
  auto r = healthy();
  add_case(r, "gemm", "fp64-n4096-alone", "throughput", "FLOP/s", results::Better::higher, "device", {}, {},
           0, false);
  r.cases.back().state = CaseState::skip;
  r.cases.back().reason = "budget";
  const auto v = judge(r);
  EXPECT_EQ(v.state, "PASS");
  EXPECT_EQ(v.accounting.skipped, 1);
  r.cases.back().reason = "too little memory";
  EXPECT_EQ(judge(r).state, "WARN");
  r.cases.back().reason = "budget";
  r.plan.back().required = true;
  EXPECT_EQ(judge(r).state, "INCONCLUSIVE");
}

TEST(VerdictAccounting, WhatTheMachineDoesNotOfferIsRequiredByNameOnly) {
  auto r = healthy();
  add_case(r, "gemm", "fp64-n4096-alone", "throughput", "FLOP/s", results::Better::higher, "device", {}, {},
           0, false);
  r.cases.back().state = CaseState::skip;
  r.cases.back().reason = "no access between the GPUs of a node";
  auto options = verdict::options_from(r);
  options.require = {"coverage"};
  EXPECT_EQ(verdict::judge(r, options).state, "WARN");
  options.require = {"coverage", "gemm/fp64-n4096-*"};
  EXPECT_EQ(verdict::judge(r, options).state, "INCONCLUSIVE");
}

TEST(VerdictAccounting, OpportunisticErrorIsInconclusive) {
  auto r = healthy();
  add_case(r, "gemm", "fp64-n4096-alone", "throughput", "FLOP/s", results::Better::higher, "device", {}, {},
           0, false);
  r.cases.back().state = CaseState::error;
  EXPECT_EQ(judge(r).state, "INCONCLUSIVE");
}

TEST(VerdictAccounting, NotApplicableIsCountedApart) {
  auto r = healthy();
  plan_only(r, "p2p", "latency-8-mpi", true);
  r.plan.back().state = "not_applicable";
  const auto v = judge(r);
  EXPECT_EQ(v.state, "PASS");
  EXPECT_EQ(v.accounting.planned, 1);
  EXPECT_EQ(v.accounting.not_applicable, 1);
}

TEST(VerdictAccounting, ZeroSamplesOfOneEntityNamesIt) {
  auto r = healthy();
  first_case(r).count[2] = 0;
  const auto v = judge(r);
  EXPECT_EQ(v.state, "INCONCLUSIVE");
  EXPECT_THAT(all_reasons(v), HasSubstr("node2/cores0-1"));
  EXPECT_EQ(state_of(r, v, "node2/cores0-1"), "INCONCLUSIVE");
  EXPECT_EQ(state_of(r, v, "node2"), "INCONCLUSIVE");
  EXPECT_EQ(state_of(r, v, "node1"), "PASS");
}

TEST(VerdictAccounting, MeasuredNanIsInconclusiveButNotTakenIsNot) {
  auto r = healthy();
  auto& c = first_case(r);
  c.metrics[0].values[1 * c.samples() + 5] = std::nan("");
  EXPECT_EQ(judge(r).state, "INCONCLUSIVE");
  EXPECT_THAT(all_reasons(judge(r)), HasSubstr("not a number"));
  c.count[1] = 5;  // the last sample was not taken
  EXPECT_EQ(judge(r).state, "PASS");
}

TEST(VerdictAccounting, MissingMetricAndMissingEntityAreInconclusive) {
  auto r = healthy();
  first_case(r).metrics.clear();
  EXPECT_EQ(judge(r).state, "INCONCLUSIVE");
  auto s = healthy();
  s.plan[0].entities = 5;
  EXPECT_THAT(all_reasons(judge(s)), HasSubstr("4 of 5"));
  EXPECT_EQ(judge(s).state, "INCONCLUSIVE");
}

struct Damage {
  const char* told;  ///< what the verdict says of it
  void (*make)(results::Results&);
};

class VerdictOfDamage : public ::testing::TestWithParam<Damage> {};

TEST_P(VerdictOfDamage, IsInconclusiveAndNamesIt) {
  auto r = healthy();
  GetParam().make(r);
  const auto v = judge(r);
  EXPECT_EQ(v.state, "INCONCLUSIVE");
  EXPECT_EQ(v.exit_code, 3);
  EXPECT_THAT(all_reasons(v), HasSubstr(GetParam().told));
}

using R = results::Results;
INSTANTIATE_TEST_SUITE_P(
    VerdictAccounting, VerdictOfDamage,
    ::testing::Values(
        Damage{"block: -7", [](R& r) { first_case(r).block[0] = -7; }},
        Damage{"block: 2000000000", [](R& r) { first_case(r).block[0] = 2'000'000'000; }},
        Damage{"node0/cores0-1 decrease", [](R& r) { first_case(r).t[1] = first_case(r).t[0] - 5; }},
        Damage{"node0/cores0-1 is not finite", [](R& r) { first_case(r).t[1] = std::nan(""); }},
        Damage{"node0/cores0-1 is not finite", [](R& r) { first_case(r).t[1] = 1e13; }},
        Damage{"duplicate node1/cores0-1", [](R& r) { first_case(r).entity[2] = first_case(r).entity[1]; }},
        Damage{"sample: duplicate 0", [](R& r) { first_case(r).sample[1] = first_case(r).sample[0]; }},
        Damage{"-3 is no number of a sample", [](R& r) { first_case(r).sample[0] = -3; }},
        Damage{"no length of time", [](R& r) { first_case(r).shares.wall_s = -1; }},
        Damage{"two parts of kind device", [](R& r) { r.entities.back().id = r.entities.end()[-5].id; }},
        Damage{"driven by rank 3", [](R& r) { r.entities.end()[-5].rank = 3, r.entities.back().rank = 3; }},
        Damage{"name is empty", [](R& r) { r.entities.back().name.clear(); }},
        Damage{"\"noon\" is not a valid ISO 8601 time", [](R& r) { r.info.started = "noon"; }},
        Damage{"ended before it started",
               [](R& r) { r.info.started = "2026-01-02T00:00:00Z", r.info.ended = "2026-01-01T00:00:00Z"; }},
        Damage{"ended before it started", [](R& r) {
                 first_case(r).started = "2026-01-02T00:00:00Z", first_case(r).ended = "2026-01-01T00:00:00Z";
               }}));

TEST(VerdictAccounting, AbortedRunIsInconclusive) {
  auto r = healthy();
  r.info.state = "aborted";
  r.events.push_back({0, -1, "aborted", "stopped by SIGTERM"});
  EXPECT_EQ(judge(r).state, "INCONCLUSIVE");
  EXPECT_THAT(all_reasons(judge(r)), HasSubstr("SIGTERM"));
}

TEST(VerdictAccounting, ACaseThatLacksLinksNamesNoneOfAnotherScope) {
  auto r = healthy(4, 2);
  const auto devices = rows_of_kind(r, "device");
  std::map<std::pair<std::size_t, std::size_t>, std::int32_t> known;
  const auto link_case = [&](const char* name,
                             const std::vector<std::pair<std::size_t, std::size_t>>& pairs) {
    std::vector<std::int32_t> rows;
    for (const auto& [a, b] : pairs) {
      const auto [at, fresh] = known.try_emplace({a, b}, static_cast<std::int32_t>(r.entities.size()));
      const std::string link = "link" + std::to_string(a) + ">" + std::to_string(b);
      if (fresh) r.entities.push_back({"link", link, "path", link, devices[a], -1});
      rows.push_back(at->second);
    }
    auto& c = add_case(r, "p2p", name, "bandwidth", "B/s", results::Better::higher, "link", rows,
                       std::vector<double>(rows.size(), 1e9));
    for (const auto& [a, b] : pairs) {
      c.source.push_back(devices[a]);
      c.destination.push_back(devices[b]);
    }
  };
  link_case("node", {{0, 1}, {2, 3}, {4, 5}, {6, 7}});
  link_case("latency", {{0, 2}, {2, 0}, {1, 3}, {3, 1}, {0, 4}, {4, 0}});
  link_case("cross", {{0, 2}, {2, 0}, {1, 3}, {3, 1}});
  r.plan.back().entities = 6;
  const auto v = judge(r);
  EXPECT_THAT(all_reasons(v), HasSubstr("p2p/cross: 4 of 6 entities measured, without link0>4, link4>0\n"));
  EXPECT_NE(state_of(r, v, "link0>1"), "INCONCLUSIVE");
  EXPECT_EQ(state_of(r, v, "link4>0"), "INCONCLUSIVE");
}

TEST(VerdictAccounting, RanksThatDidNotFinishACaseAreInDoubtAloneAndTheOthersAreJudged) {
  auto r = healthy(6);
  auto devices = rows_of_kind(r, "device");
  const auto last = devices.back();
  devices.pop_back();
  std::vector<double> rates(5, 1e11);
  auto& c = add_case(r, "gemm", "fp32-n2048-alone", "throughput", "FLOP/s", results::Better::higher, "device",
                     devices, rates);
  r.plan.back().entities = 6;
  c.parameters[results::unfinished_parameter] = "is incomplete on node5/cores0: cut short";
  c.parameters[results::unfinished_parts_parameter] = {r.entities[static_cast<std::size_t>(last)].name};
  // What the rank measured: neither a case of its own nor a reason for others, though it ended before its
  // row.
  auto rest = c;
  rest.name = c.name + ".u1";
  rest.state = results::CaseState::error;
  rest.entity.clear(), rest.count.clear(), rest.t = {}, rest.metrics.clear();
  const std::size_t own = r.cases.size() - 1;
  r.cases.push_back(rest);
  const auto planned = r.plan.size();
  for (const bool required : {true, false}) {
    r.plan.back().required = r.cases[own].required = required;
    const auto v = judge(r);
    EXPECT_THAT(all_reasons(v), HasSubstr(std::string(required ? "required case " : "case ") +
                                          "gemm/fp32-n2048-alone is incomplete on node5/cores0: cut short"));
    EXPECT_EQ(v.state, "INCONCLUSIVE");
    EXPECT_EQ(state_of(r, v, r.entities[static_cast<std::size_t>(last)].name), "INCONCLUSIVE");
    EXPECT_EQ(state_of(r, v, "node5"), "INCONCLUSIVE");
    EXPECT_EQ(state_of(r, v, "node4"), "PASS");
    EXPECT_EQ(v.accounting.planned, static_cast<std::int64_t>(planned));
    EXPECT_EQ(v.accounting.error, 0);
  }
}

/// The row of a domain or node is of all its ranks: none is absent.
TEST(VerdictAccounting, ARankThatReportsNoRowOfACaseIsInDoubtAlone) {
  auto r = healthy(6);
  auto& c = first_case(r);
  c.parameters[results::unfinished_parameter] = "ended in error on a device: out of memory";
  c.parameters[results::unfinished_parts_parameter] = {
      r.entities[static_cast<std::size_t>(rows_of_kind(r, "device").back())].name};
  const auto v = judge(r);
  EXPECT_EQ(state_of(r, v, "node5"), "INCONCLUSIVE");
  EXPECT_EQ(state_of(r, v, "node4"), "PASS");
}

TEST(VerdictAccounting, ALostNodeIsOneReasonForAllItsCases) {
  auto r = healthy(6, 2);
  const auto devices = rows_of_kind(r, "device");
  for (const char* name : {"fp32-n1024-together", "fp32-n512-together"}) {
    add_case(r, "gemm", name, "throughput", "FLOP/s", results::Better::higher, "device",
             {devices.begin(), devices.begin() + 8}, std::vector<double>(8, 1e11));
    r.plan.back().entities = 12;
  }
  for (const auto device : {devices[8], devices[9]}) r.events.push_back({1, device, "lost", "it was lost"});
  const auto v = judge(r);
  const auto naming = [&](const char* text) {
    return std::ranges::count_if(
        v.reasons, [&](const std::string& reason) { return reason.find(text) != std::string::npos; });
  };
  EXPECT_EQ(naming("node4: 2 required cases were measured without its lost ranks, the first: gemm/"), 1);
  EXPECT_EQ(naming("without node4"), 0);
  EXPECT_EQ(naming("8 of 12 entities measured, without node5/cores0-1, node5/cores2-3"), 2);
}

TEST(VerdictAccounting, AFailedCaseOfOnePartNamesIt) {
  auto r = healthy();
  auto& one = add_case(r, "gemm", "one", "throughput", "FLOP/s", results::Better::higher, "device",
                       {row_named(r, "node2/cores0-1")}, {1e11});
  one.state = results::CaseState::fail;
  one.reason = "other bytes were read back";
  ASSERT_NE(find_kind(judge(r), "corrupt"), nullptr);
  EXPECT_EQ(find_kind(judge(r), "corrupt")->text,
            "node2/cores0-1 (rank 2): gemm/one failed: other bytes were read back");
  r.cases.pop_back();
  r.plan.pop_back();
  first_case(r).state = results::CaseState::fail;
  EXPECT_EQ(find_kind(judge(r), "corrupt")->text, "gemm/fp32-n2048-together failed") << "of all of them";
}

}  // namespace
}  // namespace assay
