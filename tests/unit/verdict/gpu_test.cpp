// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>

#include "tests/unit/fabricate.hpp"

namespace assay {
namespace {

using namespace fabricate;
using ::testing::HasSubstr;
constexpr double nan_value = results::not_taken;

/// Four nodes with two GPUs each, which no rank drives, beside the host devices.
results::Results with_gpus() {
  auto r = healthy();
  auto& table = r.inventory["device"];
  for (int n = 0; n < 4; ++n)
    for (int g = 0; g < 2; ++g) {
      const std::string node = "node" + std::to_string(n), name = node + "/gpu" + std::to_string(g);
      table.entity.push_back(static_cast<std::int32_t>(r.entities.size()));
      r.entities.push_back({"device", "GPU-" + name, "uuid", name, row_named(r, node), -1});
      table.text["device_kind"].emplace_back("gpu");
      table.text["model"].emplace_back("H100");
      table.text["vbios"].emplace_back("96");
      table.text["ecc"].emplace_back("on");
      table.number["memory_bytes"].push_back(80e9);
      table.number["nvlinks_up"].push_back(18);
      table.number["power_limit_w"].push_back(700);
      table.number["pcie_width"].push_back(16);
      table.number["pcie_width_max"].push_back(16);
    }
  return r;
}

void count(results::Results& r, const std::string& counter, double before, double after,
           const std::string& name = "node2/gpu1") {
  r.counters.push_back({r.cases[0].path(), row_named(r, name), counter, before, after});
}

const results::Finding* about(const results::VerdictData& v, const std::string& metric) {
  for (const auto& f : v.findings)
    if (f.metric == metric) return &f;
  return nullptr;
}

TEST(GpuVerdict, GpusThatNobodyDrivesAreNoGap) {
  const auto r = with_gpus();
  const auto v = judge(r);
  EXPECT_EQ(v.state, "PASS") << all_reasons(v);
  EXPECT_EQ(state_of(r, v, "node2/gpu1"), "NOT_TESTED");
  EXPECT_EQ(state_of(r, v, "node2"), "PASS");
}

/// Bandwidth of GPUs of which each reached `share[i]` of a bound of 1e12 B/s.
results::Results bounded(const std::vector<double>& share, double floor = 0.75) {
  auto r = cluster(static_cast<int>(share.size()));
  std::vector<double> rates;
  for (const double s : share) rates.push_back(s * 1e12);
  auto& c = add_case(r, "memory", "triad-alone", "bandwidth", "B/s", results::Better::higher, "device",
                     rows_of_kind(r, "device"), rates);
  c.parameters["bound"] = "memory clock x bus width";
  c.parameters["bound_floor"] = floor;
  c.metrics[0].judging = results::Judging{results::MetricClass::memory, 0.03, 2, results::Floor::gpu_bound};
  c.metrics.push_back(
      {"bound_share", "1", results::Better::higher, false, results::Role::covariate, false, share});
  add_selftest(r, "memory");
  return r;
}

TEST(GpuVerdict, ARateFarBelowThePhysicalBoundIsNamedWithoutPeers) {
  const auto slow = bounded({0.5});
  const auto v = judge(slow);
  const auto* f = about(v, "memory/triad-alone:bandwidth");
  ASSERT_NE(f, nullptr) << all_reasons(v);
  EXPECT_EQ(f->reference_kind, "physical");
  EXPECT_EQ(f->name, "node0/cores0-1");
  EXPECT_NEAR(f->reference.value_or(0), 0.75e12, 0.01e12);
  EXPECT_EQ(about(judge(bounded({0.8})), "memory/triad-alone:bandwidth"), nullptr);
}

TEST(GpuVerdict, ASlowCollectiveNamesTheNodeAndNoGpu) {
  for (const double share : {0.3, 0.8}) {
    auto r = bounded({share, share}, 0.55);
    auto& judging = *r.cases[0].metrics[0].judging;
    judging.of = results::MetricClass::collective, judging.shared_by = results::SharedBy::node;
    auto& one = r.entities[static_cast<std::size_t>(r.cases[0].entity[1])];
    one.parent = row_named(r, "node0");
    const auto v = judge(r);
    const auto* f = about(v, "memory/triad-alone:bandwidth");
    ASSERT_EQ(f != nullptr, share < 0.55) << all_reasons(v);
    if (f != nullptr) {
      EXPECT_EQ(f->name, "node0");
      EXPECT_EQ(f->reference_kind, "physical");
    }
  }
}

TEST(GpuVerdict, EveryLinkIsHeldAgainstItsOwnBound) {
  auto r = cluster(3);
  const auto devices = rows_of_kind(r, "device");
  auto& c = add_case(r, "p2p", "bandwidth-put-67108864-node-cuda", "bandwidth", "B/s",
                     results::Better::higher, "link", devices, {0.8e12, 0.8e12, 0.3e12});
  c.source = {devices[0], devices[0], devices[1]};
  c.destination = {devices[1], devices[2], devices[2]};
  c.entity.assign(3, devices[0]);  // one row of /entities: only the ends tell links apart
  c.parameters["bound_floor"] = 0.6;
  c.metrics[0].judging = results::Judging{results::MetricClass::link, 0.05, 1, results::Floor::gpu_bound};
  c.metrics.push_back(
      {"bound_share", "1", results::Better::higher, false, results::Role::covariate, false, {0.8, 0.8, 0.3}});
  add_selftest(r, "p2p");
  const auto v = judge(r);
  const auto* f = about(v, "p2p/bandwidth-put-67108864-node-cuda:bandwidth");
  ASSERT_NE(f, nullptr) << all_reasons(v);
  EXPECT_EQ(f->reference_kind, "physical");
  EXPECT_NEAR(f->reference.value_or(0), 0.6e12, 0.01e12);
}

TEST(GpuVerdict, WhatTheDriverSaysOfAGpuIsAFinding) {
  struct Told {
    const char *column, *text, *severity, *action;
  };
  for (const Told& t :
       std::initializer_list<Told>{{"recovery_action_info", "reset", "FAIL", "RESET"},
                                   {"recovery_action_info", "reboot", "FAIL", "REBOOT"},
                                   {"recovery_action_info", "drain and reset", "WARN", "RESET"},
                                   {"sram_threshold_info", "exceeded", "FAIL", "REPLACE"},
                                   {"fabric_info", "in progress", "WARN", "TRIAGE"},
                                   {"fabric_info", "failed (999)", "FAIL", "TRIAGE"},
                                   {"fabric_trouble_info", "route unhealthy", "WARN", "TRIAGE"},
                                   {"recovery_action_info", "none", "", ""},
                                   {"sram_threshold_info", "kept", "", ""},
                                   {"fabric_info", "completed", "", ""},
                                   {"fabric_info", "", "", ""}}) {
    auto r = with_gpus();
    auto& column = r.inventory["device"].text[t.column];
    column.assign(8, "");
    column[5] = t.text;
    const auto v = judge(r);
    const auto* f = about(v, t.column);
    ASSERT_EQ(f != nullptr, *t.severity != 0) << t.column << " " << t.text << all_reasons(v);
    if (f == nullptr) continue;
    EXPECT_EQ(f->severity, t.severity) << t.text;
    EXPECT_EQ(f->action, t.action) << t.text;
    EXPECT_EQ(f->name, "node2/gpu1");
  }
}

TEST(GpuVerdict, WithoutABoundOrWithAnAbsurdFloorNothingIsHeldAgainstIt) {
  EXPECT_EQ(about(judge(bounded({0.5}, 0)), "memory/triad-alone:bandwidth"), nullptr);
  EXPECT_EQ(about(judge(bounded({0.5}, 7)), "memory/triad-alone:bandwidth"), nullptr);
  auto unknown = bounded({0.5});
  unknown.cases[0].metrics[1].values = {nan_value};
  EXPECT_EQ(about(judge(unknown), "memory/triad-alone:bandwidth"), nullptr);
}

TEST(GpuVerdict, ACaseThatLacksADeviceDoesNotNameThem) {
  auto r = with_gpus();
  r.plan[0].entities = 5;
  EXPECT_THAT(all_reasons(judge(r)), ::testing::Not(HasSubstr("gpu")));
}

struct Expected {
  const char* counter;
  double before, after;
  const char *severity, *action;
};

TEST(GpuVerdict, CountersAndTheirMeaning) {
  for (const Expected& e : std::initializer_list<Expected>{
           {"nvml_ecc_uncorrected", 0, 1, "FAIL", "RESET"},
           {"nvml_ecc_sram_uncorrected", 0, 1, "FAIL", "REPLACE"},
           {"nvml_remap_failure", 1, 1, "FAIL", "REPLACE"},
           {"nvml_remap_pending", 1, 1, "WARN", "RESET"},
           {"nvml_remapped_uncorrectable", 0, 1, "WARN", "RESET"},
           {"nvml_ecc_corrected", 0, 5, "INFO", "MONITOR"},
           {"nvml_ecc_corrected", 0, 5000, "WARN", "MONITOR"},
           {"nvml_pcie_fatal", 0, 1, "FAIL", "TRIAGE"},
           {"nvml_nvlink_recovery", 0, 1, "WARN", "TRIAGE"},
           {"xid_48", 0, 1, "FAIL", "RESET"},
           {"xid_63", 0, 1, "WARN", "RESET"},
           {"xid_64", 0, 1, "FAIL", "REPLACE"},
           {"xid_79", 0, 1, "FAIL", "REBOOT"},
           {"xid_95", 0, 1, "FAIL", "RESET"},
           {"xid_119", 0, 1, "WARN", "REBOOT"},
           {"xid_120", 0, 1, "WARN", "REBOOT"},
           {"xid_31", 0, 1, "INFO", "MONITOR"},
           {"xid_999", 0, 1, "WARN", "TRIAGE"},
       }) {
    auto r = with_gpus();
    count(r, e.counter, e.before, e.after);
    const auto v = judge(r);
    const auto* f = about(v, e.counter);
    ASSERT_NE(f, nullptr) << e.counter;
    EXPECT_EQ(f->severity, e.severity) << f->text;
    EXPECT_EQ(f->action, e.action) << f->text;
    EXPECT_EQ(f->name, "node2/gpu1");
    EXPECT_EQ(f->id, "GPU-node2/gpu1");
    EXPECT_EQ(v.state == "FAIL", std::string(e.severity) == "FAIL") << e.counter;
  }
}

TEST(GpuVerdict, StandingCountersAreSilent) {
  auto r = with_gpus();
  for (const char* counter :
       {"nvml_ecc_uncorrected", "nvml_remapped_uncorrectable", "xid_79", "nvml_violation_hw_thermal_ns"})
    count(r, counter, 7, 7);
  for (const char* counter :
       {"nvml_energy_j", "nvml_violation_power_ns", "nvml_violation_low_utilization_ns", "nvml_xid"})
    count(r, counter, 7, 9e9);
  count(r, "nvml_remap_pending", 0, 0);
  EXPECT_EQ(judge(r).state, "PASS") << all_reasons(judge(r));
}

TEST(GpuVerdict, ErrorsOfOnChipMemoryAreToldOnce) {
  auto r = with_gpus();
  count(r, "nvml_ecc_uncorrected", 0, 2);
  count(r, "nvml_ecc_sram_uncorrected", 0, 2);
  const auto v = judge(r);
  EXPECT_EQ(about(v, "nvml_ecc_uncorrected"), nullptr);
  EXPECT_NE(about(v, "nvml_ecc_sram_uncorrected"), nullptr);
}

TEST(GpuVerdict, SoftwareXidOnAGpuThatFailedACheckIsHardware) {
  auto r = with_gpus();
  count(r, "xid_31", 0, 1);
  r.errors.push_back({r.cases[0].path(), row_named(r, "node2/gpu1"), 4711, 0xff, 0xfe, 0xfd, 1.0});
  EXPECT_EQ(about(judge(r), "xid_31")->severity, "FAIL");
}

/// `count` wrong words of a GPU, `step` bytes apart, of two sweeps; word i is seen by multiprocessor `sm(i)`.
template <class Sm>
std::string told_of(std::uint64_t count, std::uint64_t step, const Sm& sm, double sweep_s = 0.5) {
  auto r = with_gpus();
  results::CaseData pattern = r.cases.front();
  pattern.suite = "memory";
  pattern.name = "pattern-march-c-together";
  r.cases.push_back(std::move(pattern));
  for (std::uint64_t i = 0; i < count; ++i)
    r.errors.push_back({"memory/pattern-march-c-together", row_named(r, "node2/gpu1"), i * step, 1, 3, 1,
                        i % 2 == 0 ? 1.0 : 1.0 + sweep_s, sm(i), 3, 17});
  const auto v = judge(r);
  const auto* f = find_kind(v, "corrupt");
  return f == nullptr ? "" : f->text;
}

TEST(GpuVerdict, WrongWordsOfOneMultiprocessorNameIt) {
  const auto five = [](std::uint64_t) { return 5; };
  EXPECT_THAT(told_of(8, 1 << 20, five),
              ::testing::ContainsRegex("8 recorded wrong words.* 8 places and 2 sweeps.* SM 5: suspect"));
  EXPECT_THAT(told_of(8, 1 << 20, five), HasSubstr("first at 0 by SM 5 warp 3 lane 17"));
  using ::testing::Not;
  EXPECT_THAT(told_of(8, 1 << 20, [](std::uint64_t i) { return i == 7 ? 6 : 5; }), Not(HasSubstr("suspect")))
      << "two of them";
  EXPECT_THAT(told_of(40, 64, five), Not(HasSubstr("suspect")))
      << "a row of the memory, which one block looks at";
  EXPECT_THAT(told_of(8, 1 << 20, five, 0), Not(HasSubstr("suspect")))
      << "one sweep: places at equal distances may meet one multiprocessor";
  EXPECT_THAT(told_of(8, 1 << 20, [](std::uint64_t) { return -1; }), Not(HasSubstr("SM"))) << "unknown";
}

/// A pattern on the devices of four nodes, at these shares of their own bandwidth.
results::Results with_pattern(const std::vector<double>& efficiency,
                              results::Role role = results::Role::metric, double chunk = 2e9) {
  auto r = healthy();
  const auto devices = rows_of_kind(r, "device");
  auto& c = add_case(r, "memory", "pattern-march-c-together", "bandwidth", "B/s", results::Better::higher,
                     "device", devices, std::vector<double>(devices.size(), 2e12));
  c.parameters = {{"planned_bytes", 4 * chunk}, {"chunks", 4}};
  c.metrics.push_back({"efficiency", "1", results::Better::higher, false, role, false, efficiency});
  add_selftest(r, "memory");
  return r;
}

TEST(GpuVerdict, APatternSlowerThanTheGpusOwnCopyIsANote) {
  const char* metric = "memory/pattern-march-c-together:efficiency";
  EXPECT_EQ(about(judge(with_pattern({0.86, 0.9, 0.99, 1.1})), metric), nullptr);
  const auto one = judge(with_pattern({0.9, 0.84, 0.9, 0.9}));
  ASSERT_NE(about(one, metric), nullptr);
  EXPECT_EQ(one.state, "PASS") << "a ratio to the device's own bandwidth explains and never judges";
  EXPECT_EQ(about(one, metric)->severity, "INFO");
  EXPECT_EQ(about(one, metric)->name, "node1/cores0-1");
  EXPECT_THAT(about(one, metric)->text, HasSubstr("84.0 % of the GPU's own copy bandwidth"));
  const auto all = judge(with_pattern({0.5, 0.6, 0.4, 0.55}));
  EXPECT_EQ(all.state, "PASS");
  EXPECT_EQ(about(all, metric)->members.size(), 4u) << "one note for all";
  EXPECT_EQ(about(all, metric)->value, 0.4);
  EXPECT_EQ(about(judge(with_pattern({0.5, 0.6, 0.4, 0.55}, results::Role::covariate)), metric), nullptr)
      << "hosts";
  EXPECT_EQ(about(judge(with_pattern({0.5, 0.6, 0.4, 0.55}, results::Role::metric, 1e8)), metric), nullptr)
      << "over too soon";
  const auto limited = judge(with_pattern({0.9, 0.5, 0.9, 0.9}),
                             "[[limit]]\nmetric = \"memory/pattern-*:efficiency\"\nmin = \"0.85 1\"\n");
  EXPECT_EQ(limited.state, "FAIL") << "a limit judges what the user wants judged";
}

TEST(GpuVerdict, HardwareThrottlingWarnsAndNamesTheCase) {
  auto r = with_gpus();
  count(r, "nvml_violation_hw_thermal_ns", 0, 3e9);
  const auto v = judge(r);
  EXPECT_EQ(v.state, "WARN");
  ASSERT_NE(find_kind(v, "throttled"), nullptr);
  EXPECT_THAT(find_kind(v, "throttled")->text,
              ::testing::ContainsRegex("node2/gpu1: heat .* 3 s in 1 case, 3 s of it in gemm/"));
  auto old = with_gpus();
  count(old, "nvml_violation_thermal_ns", 0, 3e9);
  EXPECT_NE(find_kind(judge(old), "throttled"), nullptr)
      << "a driver that does not tell hardware and software apart";
  count(old, "nvml_violation_hw_thermal_ns", 0, 0);
  EXPECT_EQ(find_kind(judge(old), "throttled"), nullptr);
}

TEST(GpuVerdict, UnsupportedAndUnreadableCounters) {
  auto r = with_gpus();
  count(r, "nvml_ecc_uncorrected", nan_value, nan_value);
  EXPECT_EQ(judge(r).state, "PASS");
  auto required = r;
  required.config["require"] = Json::array({"nvml_ecc_uncorrected"});
  EXPECT_EQ(judge(required).state, "INCONCLUSIVE");
  required.config["require"] = Json::array({"nvml"});
  EXPECT_EQ(judge(required).state, "INCONCLUSIVE");
  count(r, "nvml_pcie_replay", 0, nan_value);
  EXPECT_EQ(judge(r).state, "INCONCLUSIVE");
}

TEST(GpuVerdict, AGpuUnlikeTheOthersIsNamed) {
  auto r = with_gpus();
  r.inventory["device"].text["vbios"][5] = "95";
  auto v = judge(r);
  EXPECT_EQ(v.state, "WARN");
  ASSERT_NE(find_kind(v, "mismatch"), nullptr);
  EXPECT_EQ(find_kind(v, "mismatch")->name, "node2/gpu1");
  EXPECT_THAT(find_kind(v, "mismatch")->text, HasSubstr("vbios is 95, 7 other GPUs have 96"));
  EXPECT_EQ(state_of(r, v, "node2"), "WARN");
  for (const char* less : {"nvlinks_up", "memory_bytes"}) {
    r = with_gpus();
    r.inventory["device"].number[less][5] *= 0.9;
    v = judge(r);
    EXPECT_EQ(v.state, "FAIL") << less;
    ASSERT_NE(find_kind(v, "missing"), nullptr) << less;
    EXPECT_EQ(find_kind(v, "missing")->name, "node2/gpu1");
  }
  r = with_gpus();
  r.inventory["device"].number["power_limit_w"][5] = 500;
  EXPECT_EQ(judge(r).state, "WARN");
  r.inventory["device"].number["power_limit_w"][5] = nan_value;
  r.inventory["device"].text["ecc"][5] = "";
  EXPECT_EQ(judge(r).state, "PASS") << "what a GPU does not tell is not compared";
}

TEST(GpuVerdict, ModelsAreComparedAndThenKeptApart) {
  auto r = with_gpus();
  r.inventory["device"].text["model"][5] = "A100";
  r.inventory["device"].number["memory_bytes"][5] = 40e9;
  const auto v = judge(r);
  ASSERT_EQ(v.findings.size(), 1U);
  EXPECT_EQ(v.findings[0].metric, "model");
}

TEST(GpuVerdict, ANarrowPcieLinkFailsWithoutPeers) {
  auto r = with_gpus();
  for (double& width : r.inventory["device"].number["pcie_width"]) width = 8;
  EXPECT_EQ(judge(r).state, "FAIL");
  EXPECT_EQ(count_severity(judge(r), "FAIL"), 8U);
  auto& node = r.inventory["node"];
  node.entity = rows_of_kind(r, "node");
  node.text["hypervisor"] = {"kvm", "kvm", "kvm", "kvm"};
  EXPECT_EQ(judge(r).state, "PASS");
}

TEST(GpuVerdict, ALinkIsJudgedByWhatItReachesWhenBusy) {
  auto r = with_gpus();
  r.inventory["device"].number["pcie_generation_max"].assign(8, 5);
  const auto row = row_named(r, "node2/gpu1");
  r.telemetry = {
      {row, row, row}, {1, 2, 3}, {{"pcie_generation", {1, 1, 4}}, {"utilisation", {0, 0, 0.3}}}, {}};
  EXPECT_EQ(judge(r).state, "PASS") << "it rests";
  r.telemetry.number["utilisation"][2] = 0.9;
  const auto v = judge(r);
  EXPECT_EQ(v.state, "WARN");
  ASSERT_NE(about(v, "pcie_generation"), nullptr);
  EXPECT_THAT(about(v, "pcie_generation")->text,
              HasSubstr("node2/gpu1: PCIe link of generation 4 of 5, even when busy"));
}

TEST(GpuVerdict, ANodeWithFewerGpusIsNamed) {
  auto r = with_gpus();
  auto& node = r.inventory["node"];
  node.entity = rows_of_kind(r, "node");
  node.number["gpus"] = {2, 2, 0, 2};
  const auto v = judge(r);
  EXPECT_EQ(v.state, "FAIL");
  ASSERT_NE(find_kind(v, "missing"), nullptr);
  EXPECT_EQ(find_kind(v, "missing")->name, "node2");
}

}  // namespace
}  // namespace assay
