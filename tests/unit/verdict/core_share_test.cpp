// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/unit/verdict/fleet.hpp"

namespace assay {
namespace {

using namespace fabricate;
using testing::HasSubstr;
using testing::Not;

constexpr std::size_t slow_one = 17;
const std::string slow_device = "node17/cores0-1";

void add_shares(results::CaseData& c, std::int32_t entity, double share, double others = 0.99) {
  results::Metric m{
      results::core_share, "1", results::Better::higher, false, results::Role::covariate, false, {}};
  for (const auto e : c.entity) m.values.push_back(e == entity ? share : others);
  c.metrics.push_back(m);
}

/// 64 devices of which one has 62 % of its rate, measured again, with core shares in both. `lasting`: for 70
/// s of the screening, and no more in the retest.
results::Results run_with(double screened, double again, double others = 0.99, bool lasting = false) {
  auto fleet = Fleet::of(64, 0.002);
  const Fleet healthy = fleet;
  fleet.rate[slow_one] *= 0.62;
  if (lasting) fleet.block_s = 35;
  auto r = fleet.run();
  EXPECT_EQ(Fleet::run_retests(r, lasting ? healthy : fleet), 1U);
  for (auto& c : r.cases)
    add_shares(c, row_named(r, slow_device), c.name.ends_with(".c1") ? again : screened, others);
  return r;
}

void add_quota(results::Results& r, double cores) {
  auto& table = r.inventory["node"];
  for (const auto node : rows_of_kind(r, "node")) {
    table.entity.push_back(node);
    table.number["cpu_quota_cores"].push_back(
        r.entities[static_cast<std::size_t>(node)].name == "node17" ? cores : results::not_taken);
  }
}

TEST(VerdictCoreShare, ASharedCoreIsNamedAndDoesNotFail) {
  auto r = run_with(0.62, 0.6);
  r.events.push_back({1.0, row_named(r, slow_device), results::core_share_event, "make (pid 4711)"});
  const auto v = judge(r);
  ASSERT_EQ(v.findings.size(), 1U);
  const auto& f = v.findings[0];
  EXPECT_EQ(f.severity, "WARN");
  EXPECT_EQ(f.kind, "shared-core");
  EXPECT_EQ(f.name, slow_device);
  EXPECT_THAT(f.text, HasSubstr("ran for 60.0 % of the time in which it was ready to run (others 99.0 %)"));
  EXPECT_THAT(f.text, HasSubstr("make (pid 4711)"));
  EXPECT_THAT(f.text, Not(HasSubstr("remove it and test it alone")));
  EXPECT_EQ(state_of(r, v, "node17"), "WARN");
  EXPECT_EQ(v.exit_code, 0);
}

TEST(VerdictCoreShare, AQuotaIsNamedAndFails) {
  auto r = run_with(0.62, 0.62);
  add_quota(r, 0.5);
  const auto v = judge(r);
  ASSERT_EQ(v.findings.size(), 1U);
  EXPECT_EQ(v.findings[0].severity, "FAIL");
  EXPECT_EQ(v.findings[0].kind, "quota");
  EXPECT_EQ(v.findings[0].action, "CONFIG");
  EXPECT_THAT(v.findings[0].text, HasSubstr("CPU quota is 0.5 of 2 cores"));
}

TEST(VerdictCoreShare, ASlowCoreStaysAFault) {
  for (const auto& [screened, again, others] :
       {std::tuple(0.99, 0.99, 0.99),     // had its core
        std::tuple(0.62, 0.99, 0.99),     // as slow when it had it
        std::tuple(0.88, 0.88, 0.99),     // less than half of the deficit
        std::tuple(0.62, 0.62, 0.62)}) {  // its peers, too, had as little
    const auto v = judge(run_with(screened, again, others));
    ASSERT_EQ(v.findings.size(), 1U);
    EXPECT_EQ(v.findings[0].severity, "FAIL") << screened << " " << again << " " << others;
    EXPECT_EQ(v.findings[0].kind, "slow");
  }
}

/// The retest in which it had its core did not show the deficit.
TEST(VerdictCoreShare, WhatTheBlocksConfirmIsExplainedByTheirShare) {
  for (const auto& [screened, severity] : {std::pair(0.62, "WARN"), {0.99, "FAIL"}}) {
    const auto v = judge(run_with(screened, 0.99, 0.99, true));
    ASSERT_FALSE(v.findings.empty());
    EXPECT_EQ(v.findings[0].name, slow_device);
    EXPECT_EQ(v.findings[0].confirmed_by, "blocks");
    EXPECT_EQ(v.findings[0].severity, severity) << screened;
    EXPECT_EQ(v.findings[0].kind, screened < 0.9 ? "shared-core" : "intermittent");
  }
}

TEST(VerdictCoreShare, AQuotaThatLeavesAllCoresIsNoCause) {
  auto r = run_with(0.62, 0.62);
  add_quota(r, 2);
  EXPECT_EQ(judge(r).findings[0].kind, "shared-core");
}

TEST(VerdictCoreShare, ALimitFailsDespiteASharedCore) {
  const auto r = run_with(0.62, 0.62);
  const auto v = judge(r, "[[limit]]\nmetric = \"memory/triad-*:bandwidth\"\nmin = \"90 GB/s\"\n");
  const auto limit = std::find_if(v.findings.begin(), v.findings.end(),
                                  [](const auto& f) { return f.reference_kind == "limit"; });
  ASSERT_NE(limit, v.findings.end());
  EXPECT_EQ(limit->severity, "FAIL");
  EXPECT_THAT(limit->text, HasSubstr("its core was shared"));
}

/// Where most ranks lack their cores the scheduler decides who is fast: nobody is in doubt for it.
TEST(VerdictCoreShare, RatesOfSharedCoresAreNoKindsOfParts) {
  for (const std::vector<double>& rates :
       {std::vector<double>{1, 1, 1, 0.4, 0.4, 0.4},           // two halves
        std::vector<double>{1, 0.45, 0.45, 0.27, 0.27, 0.27},  // three rates
        std::vector<double>{1, 0.4, 0.4, 0.4, 0.4, 0.4}})      // one is faster
    for (const double share : {0.35, 0.99}) {
      auto fleet = Fleet::of(rates.size(), 0.003);
      for (std::size_t i = 0; i < rates.size(); ++i) fleet.rate[i] *= rates[i];
      auto r = fleet.run();
      for (auto& c : r.cases) add_shares(c, -1, 0, share);
      const auto v = judge(r);
      EXPECT_EQ(v.state == "PASS", share < 0.9) << rates[1] << " " << share << all_reasons(v);
      ASSERT_NE(find_kind(v, "split"), nullptr) << rates[1];
      EXPECT_EQ(find_kind(v, "split")->severity, share < 0.9 ? "INFO" : "WARN");
    }
}

TEST(VerdictCoreShare, OneThatIsSlowerAmongSharedCoresIsANote) {
  for (const double share : {0.35, 0.99}) {
    auto fleet = Fleet::of(8, 0.002);
    fleet.rate[5] *= 0.6;
    auto r = fleet.run();
    for (auto& c : r.cases) add_shares(c, -1, 0, share);
    const auto v = judge(r);
    const auto* f = find_kind(v, "slow");
    ASSERT_NE(f, nullptr);
    EXPECT_EQ(f->severity, share < 0.9 ? "INFO" : "WARN") << f->text;
  }
}

/// The second rank on a core set, by its name.
void share_cores_of(results::Results& r, const char* device) {
  r.entities[static_cast<std::size_t>(row_named(r, device))].name += ".1";
}

TEST(VerdictCoreShare, ARankThatSharesItsCoresHidesNoOtherPart) {
  for (const std::size_t parts : {4, 12, 64}) {
    auto fleet = Fleet::of(parts, 0.002);
    fleet.rate[1] *= 0.55;  // less than ranks that share cores are told for
    auto r = fleet.run();
    share_cores_of(r, "node2/cores0-1");
    Fleet::run_retests(r, fleet);
    const auto v = judge(r);
    EXPECT_EQ(state_of(r, v, "node1"), parts < 6 ? "WARN" : "FAIL") << parts << all_reasons(v);
    EXPECT_EQ(state_of(r, v, "node2"), "PASS") << parts;
    EXPECT_THAT(v.basis, HasSubstr("peers only " + std::to_string(parts - 1) + ", nothing 1")) << v.basis;
  }
}

TEST(VerdictCoreShare, DipsAreToldBesideARankThatSharesItsCores) {
  auto fleet = Fleet::of(8, 0.002);
  fleet.samples = 100;
  auto r = fleet.run();
  for (std::size_t s = 0; s < 100; s += 20) first_case(r).metrics[0].values[2 * 100 + s] *= 0.5;
  share_cores_of(r, "node5/cores0-1");
  const auto v = judge(r);
  ASSERT_NE(find_kind(v, "intermittent"), nullptr);
  EXPECT_EQ(find_kind(v, "intermittent")->name, "node2/cores0-1");
}

TEST(VerdictCoreShare, DipsOnASharedCoreAreANote) {
  for (const double share : {0.35, 0.99}) {
    auto fleet = Fleet::of(8, 0.002);
    fleet.samples = 100;
    auto r = fleet.run();
    for (std::size_t s = 0; s < 100; s += 20) first_case(r).metrics[0].values[2 * 100 + s] *= 0.5;
    for (auto& each : r.cases) add_shares(each, -1, 0, share);
    const auto v = judge(r);
    const auto* f = find_kind(v, "intermittent");
    ASSERT_NE(f, nullptr);
    EXPECT_EQ(f->severity, share < 0.9 ? "INFO" : "WARN");
  }
}

}  // namespace
}  // namespace assay
