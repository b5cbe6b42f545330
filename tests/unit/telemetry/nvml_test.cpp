// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>
#include <set>

#include "base/clock.hpp"
#include "fake_gpus.hpp"
#include "telemetry/counters.hpp"
#include "telemetry/nvml_thread.hpp"

namespace assay {
namespace {
using testing::FakeGpus;
using ::testing::HasSubstr;

std::unique_ptr<Nvml> opened() {
  auto out = Nvml::open();
  EXPECT_NE(out.nvml, nullptr) << out.trouble;
  return std::move(out.nvml);
}

TEST(Nvml, DescribesGpus) {
  FakeGpus fake;
  Node node;
  describe_gpus(*opened(), node);
  EXPECT_EQ(node.software.at("nvidia.driver"), "580.65.06");
  ASSERT_EQ(node.gpus.size(), 2U);
  const Gpu& g = node.gpus[1];
  EXPECT_EQ(node.gpu_uuid(1), "GPU-22222222-2222-2222-2222-222222222222");
  EXPECT_EQ(node.gpu_serial(1), "1650000000002");
  EXPECT_EQ(g.name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(g.vbios, "96.00.74.00.01");
  EXPECT_EQ(g.part, "692-2G520-0200-000");
  EXPECT_EQ(g.pci, "0000:3d:00.0");
  EXPECT_EQ(g.compute, "9.0");
  EXPECT_EQ(g.ecc, "on");
  EXPECT_EQ(g.mig, "off");
  EXPECT_EQ(g.persistence, "on");
  EXPECT_EQ(g.compute_mode, "default");
  EXPECT_EQ(g.memory_bytes, 85520809984.0);
  EXPECT_EQ(g.sm_clock_max_hz, 1.98e9);
  EXPECT_EQ(g.memory_clock_max_hz, 2.619e9);
  EXPECT_EQ(g.memory_bus_bits, 5120);
  EXPECT_EQ(g.shader_cores, 16896);
  EXPECT_EQ(g.power_limit_w, 700);
  EXPECT_EQ(g.power_limit_max_w, 700);
  EXPECT_EQ(g.pcie_width, 16);
  EXPECT_EQ(g.pcie_generation_max, 5);
  EXPECT_EQ(g.nvlinks, 18);
  EXPECT_EQ(g.nvlinks_up, 18);
  EXPECT_EQ(g.nvlink_rate_bytes_per_s, 26.562e9);
  EXPECT_EQ(g.nvlink_ends, std::vector<std::string>(18, "switch"));
  EXPECT_EQ(g.fabric, "completed");
  EXPECT_EQ(g.fabric_clique, "00000000000000000000000000000000/1");
  EXPECT_EQ(g.fabric_trouble, "");
  EXPECT_EQ(g.recovery_action, "none");
  EXPECT_EQ(g.sram_threshold, "kept");
}

TEST(Nvml, LinksBeforeHopperHaveTheRateOfTheirVersionAndTheirOwnEnds) {
  FakeGpus fake;
  fake.gpu(0)["compute"] = "8.0";
  fake.gpu(0)["nvlink"] = {{"links", 3},
                           {"up", 2},
                           {"version", 4},
                           {"speed_mb_s", 26562},
                           {"ends", {"00000000:3d:00.0", "00000000:60:00.0", "00000000:60:00.0"}}};
  fake.write();
  const Gpu g = opened()->describe(0);
  EXPECT_EQ(g.nvlink_rate_bytes_per_s, 25e9);
  EXPECT_EQ(g.nvlink_ends, (std::vector<std::string>{"0000:3d:00.0", "0000:60:00.0"}));
}

TEST(Nvml, StatesThatTheDriverTellsHaveWords) {
  FakeGpus fake;
  fake.gpu(0)["fabric"] = {{"state", 2}, {"status", 0}, {"clique", 0}, {"health", 0x6a}};
  fake.gpu(0)["recovery_action"] = 2;
  fake.gpu(0)["ecc"]["sram_threshold_exceeded"] = true;
  fake.gpu(1)["fabric"] = {{"state", 3}, {"status", 999}, {"clique", 7}, {"health", 0x91}};
  fake.write();
  const auto nvml = opened();
  const Gpu first = nvml->describe(0), second = nvml->describe(1);
  EXPECT_EQ(first.fabric, "in progress");
  EXPECT_EQ(first.fabric_trouble, "access timeout recovery");
  EXPECT_EQ(first.recovery_action, "reboot");
  EXPECT_EQ(first.sram_threshold, "exceeded");
  EXPECT_EQ(second.fabric, "failed (999)");
  EXPECT_EQ(second.fabric_trouble, "degraded bandwidth, route unhealthy");
}

TEST(Nvml, WhatAGpuDoesNotTellIsNeverZero) {
  FakeGpus fake;
  fake.gpu(0) = {{"uuid", "GPU-1"}, {"compute", "7.5"}};
  fake.gpu(1)["ecc"]["corrected"] = {{"status", "no_permission"}};
  fake.gpu(1)["temperature_c"] = {{"status", "error"}};
  fake.write();
  const auto nvml = opened();
  const Gpu g = nvml->describe(0);
  for (const std::string& text : {g.ecc, g.fabric, g.recovery_action, g.sram_threshold}) EXPECT_EQ(text, "");
  EXPECT_TRUE(std::isnan(g.nvlink_rate_bytes_per_s));
  for (const double value : {g.memory_bytes, g.power_limit_w, g.nvlinks, g.pcie_width, g.sm_clock_max_hz})
    EXPECT_TRUE(std::isnan(value));
  EXPECT_EQ(nvml->energy_j(0).told, Told::absent);
  EXPECT_EQ(nvml->ecc_errors(0, nvml::error_uncorrected, false).told, Told::absent);
  EXPECT_EQ(nvml->remapped_rows(0).failure.told, Told::absent);
  EXPECT_EQ(nvml->field(0, nvml::field::memory_temperature).told, Told::absent);
  EXPECT_EQ(nvml->field(0, 9999).told, Told::absent);
  EXPECT_EQ(nvml->link_errors(0).replay.told, Told::absent);
  EXPECT_EQ(nvml->ecc_errors(1, nvml::error_corrected, false).told, Told::absent);
  EXPECT_EQ(nvml->temperature_k(1).told, Told::failed);
  EXPECT_TRUE(std::isnan(nvml->temperature_k(1).value));
  EXPECT_EQ(nvml->ecc_errors(1, nvml::error_uncorrected, false).value, 0);
}

TEST(Nvml, AnOldDriverLacksSymbols) {
  FakeGpus fake(FAKE_NVML_OLD);
  fake.gpu(0)["throttle_reasons"] = 0x44;
  fake.write();
  const auto nvml = opened();
  EXPECT_EQ(nvml->throttle_reasons(0).value, 0x44) << "by its old name";
  EXPECT_EQ(nvml->remapped_rows(0).pending.told, Told::absent);
  EXPECT_FALSE(nvml->listen());
  EXPECT_TRUE(nvml->take_xids().empty());
}

// Since Hopper the fields of former generations answer success and 0.
TEST(Nvml, LinkErrorsComeFromTheCountersOfTheGeneration) {
  FakeGpus fake;
  for (const char* compute : {"8.0", "9.0", "10.0"}) {
    fake.gpu(0)["compute"] = compute;
    fake.gpu(0)["nvlink"] = {{"links", 18}, {"up", 18}, {"replay", 3}, {"recovery", 2}, {"crc", 7}};
    fake.write();
    const auto errors = opened()->link_errors(0);
    EXPECT_EQ(errors.replay.value, 3) << compute;
    EXPECT_EQ(errors.recovery.value, 2) << compute;
    EXPECT_EQ(errors.crc.value, 7) << compute;
    EXPECT_EQ(opened()->field(0, 52).value, 0) << "the trap is there";
    fake.gpu(0)["nvlink"] = {{"links", 18}, {"up", 18}};
    fake.write();
    EXPECT_EQ(opened()->link_errors(0).replay.told, Told::absent) << compute;
  }
}

TEST(Nvml, SaysWhyItCannotBeUsed) {
  {
    FakeGpus fake("/nowhere/libnvidia-ml.so");
    EXPECT_THAT(Nvml::open().trouble, HasSubstr("ASSAY_NVML_LIBRARY: cannot load /nowhere"));
  }
  FakeGpus fake;
  fake.json["init"] = {{"status", "error"}};
  fake.write();
  EXPECT_THAT(Nvml::open().trouble, HasSubstr("NVML cannot start"));
  fake.json.erase("init");
  fake.gpu(1)["no_handle"] = true;
  fake.write();
  const auto nvml = opened();
  EXPECT_EQ(nvml->count(), 1);
  ASSERT_EQ(nvml->lost().size(), 1U);
  EXPECT_THAT(nvml->lost()[0], HasSubstr("GPU 1 of the driver does not answer"));
}

/// Five GPUs, of which the second is lost and the fourth belongs to another job.
void take_two_away(FakeGpus& fake) {
  const Json one = fake.gpu(0);
  for (int more = 0; more < 3; ++more) fake.json["nodes"]["*"].push_back(one);
  fake.gpu(1)["no_handle"] = true;
  fake.gpu(3)["hidden"] = true;
  fake.write();
}

TEST(Nvml, AGpuKeepsItsNumberWhereOthersAreLostOrHidden) {
  FakeGpus fake;
  take_two_away(fake);
  Node node;
  const auto thread = probe_gpus(node);
  ASSERT_EQ(node.gpus.size(), 3U);
  for (const auto& [gpu, name] : {std::pair{0U, "gpu0"}, {1U, "gpu2"}, {2U, "gpu4"}})
    EXPECT_EQ(node.gpu_name(gpu), name);
  EXPECT_EQ(node.gpus_hidden, std::vector<int>{3});
  ASSERT_EQ(node.gpus_lost.size(), 1U);
  EXPECT_THAT(node.gpus_lost[0], HasSubstr("GPU 1 of the driver does not answer"));
  CounterSet set;
  set.add_gpus("node07", thread, node);
  std::set<std::string> names;
  for (const auto& source : set.sources()) names.insert(source.entity_name);
  EXPECT_EQ(names, (std::set<std::string>{"node07/gpu0", "node07/gpu2", "node07/gpu4"}));
}

TEST(Nvml, NodeGoesThroughJson) {
  FakeGpus fake;
  Node node;
  describe_gpus(*opened(), node);
  node.gpus_lost = {"GPU 7"};
  node.gpus_hidden = {5, 6};
  const Node back = node_from_json(to_json(node));
  EXPECT_EQ(to_json(back), to_json(node));
  EXPECT_EQ(back.gpus.size(), 2U);
  EXPECT_EQ(back.gpus_lost, node.gpus_lost);
  EXPECT_EQ(back.gpus_hidden, node.gpus_hidden);
  EXPECT_EQ(back.gpus[1].number, 1);
}

std::size_t index_of(const CounterSet& set, const std::string& entity, const std::string& counter) {
  for (std::size_t i = 0; i < set.sources().size(); ++i)
    if (set.sources()[i].entity_name == entity && set.sources()[i].counter == counter) return i;
  ADD_FAILURE() << "no " << counter << " of " << entity;
  return 0;
}

bool is_absent(const CounterSet& set, const std::string& counter) {
  return std::ranges::any_of(set.unsupported_sources(), [&](const auto& s) { return s.counter == counter; });
}

TEST(GpuCounters, DeltasOfWhatCanBeRead) {
  FakeGpus fake;
  fake.gpu(0).erase("nvlink");
  fake.gpu(1)["violations_ns"].erase("hw_brake");
  fake.write();
  Node node;
  CounterSet set;
  set.add_gpus("node07", probe_gpus(node));
  EXPECT_EQ(node.gpus.size(), 2U);
  EXPECT_TRUE(is_absent(set, "nvml_nvlink_replay"));
  EXPECT_TRUE(is_absent(set, "nvml_violation_hw_brake_ns"));
  const auto before = set.read();
  fake.gpu(1)["ecc"]["uncorrected"] = 2;
  fake.gpu(0)["violations_ns"]["hw_thermal"] = 5000000;
  fake.gpu(0)["temperature_c"] = {{"status", "error"}};
  fake.gpu(0)["pcie"]["replay"] = {{"status", "error"}};
  fake.write();
  const auto after = set.read();
  EXPECT_EQ(after[index_of(set, "node07/gpu1", "nvml_ecc_uncorrected")], 2);
  EXPECT_EQ(before[index_of(set, "node07/gpu1", "nvml_ecc_uncorrected")], 0);
  EXPECT_EQ(after[index_of(set, "node07/gpu0", "nvml_violation_hw_thermal_ns")], 5e6);
  const auto replay = index_of(set, "node07/gpu0", "nvml_pcie_replay");
  EXPECT_EQ(before[replay], 0);
  EXPECT_TRUE(std::isnan(after[replay])) << "was there and cannot be read any more";
  EXPECT_GE(after[index_of(set, "node07/gpu0", "nvml_energy_j")],
            before[index_of(set, "node07/gpu0", "nvml_energy_j")]);
  EXPECT_FALSE(set.sources()[index_of(set, "node07/gpu0", "nvml_energy_j")].error);
}

TEST(GpuCounters, ThoseOfGpusThatNvmlDoesNotShowAreUnsupported) {
  FakeGpus fake;
  Node node;
  CounterSet set;
  const auto thread = probe_gpus(node);
  for (const char* uuid : {"GPU-of-another-rank", "MIG-part"}) {
    node.gpus.push_back({});
    node.gpu_uuids.emplace_back(uuid);
  }
  set.add_gpus("node07", thread, node);
  std::set<std::string> absent;
  for (const auto& source : set.unsupported_sources())
    if (source.entity_name != "node07/gpu0" && source.entity_name != "node07/gpu1")
      absent.insert(source.entity_name + " " + source.counter);
  EXPECT_EQ(absent.size(), gpu_counter_names().size() + 1);
  EXPECT_TRUE(absent.contains("node07/gpu2 nvml_ecc_uncorrected"));
  EXPECT_TRUE(absent.contains("node07/gpu2 nvml_xid"));
}

TEST(GpuCounters, XidsAreCountedFromTheFirst) {
  FakeGpus fake;
  fake.gpu(0).erase("events");
  fake.write();
  Node node;
  CounterSet set;
  set.add_gpus("node07", probe_gpus(node));
  EXPECT_TRUE(is_absent(set, "nvml_xid")) << "a GPU that tells of no events";
  const auto before = set.read();
  fake.gpu(1)["events"] =
      Json::array({{{"xid", 79}}, {{"xid", 31}}, {{"xid", 31}}, {{"xid", 48}, {"after_s", 1000}}});
  fake.write();
  const auto after = set.read();
  EXPECT_EQ(after.size(), before.size() + 2);
  EXPECT_EQ(after[index_of(set, "node07/gpu1", "xid_79")], 1);
  EXPECT_EQ(after[index_of(set, "node07/gpu1", "xid_31")], 2);
  EXPECT_EQ(after[index_of(set, "node07/gpu1", "nvml_xid")], 3);
  EXPECT_EQ(set.read()[index_of(set, "node07/gpu1", "nvml_xid")], 3) << "each is told once";
}

TEST(NvmlThread, NobodyWaitsForADriverThatHangs) {
  FakeGpus fake;
  Node node;
  CounterSet set;
  auto thread = probe_gpus(node, 0.2);
  fake.gpu(1)["energy_j"] = {{"hang_s", 3}};
  fake.write();
  const double begin = now_s();
  EXPECT_FALSE(thread->call([](Nvml& nvml) { nvml.energy_j(1); }, 0.2));
  EXPECT_FALSE(thread->call([](Nvml&) {}, 10)) << "nothing more is asked";
  EXPECT_LT(now_s() - begin, 2);
  EXPECT_TRUE(thread->stuck());
  set.add_gpus("node07", thread);
  for (const double value : set.read()) EXPECT_TRUE(std::isnan(value));
  EXPECT_FALSE(set.sources().empty()) << "or nobody would miss them";
  thread.reset();
  EXPECT_LT(now_s() - begin, 2.9);
}

TEST(NvmlThread, ADriverThatStartsItsGpusIsWaitedFor) {
  FakeGpus fake;
  fake.json["init"] = {{"hang_s", 0.5}, {"status", "success"}};
  fake.write();
  Node node;
  EXPECT_EQ(probe_gpus(node, 5, 0.1), nullptr);
  EXPECT_THAT(node.gpu_trouble, HasSubstr("persistence mode"));
  const auto thread = probe_gpus(node, 5, 20);
  EXPECT_NE(thread, nullptr);
  EXPECT_EQ(node.gpus.size(), 2U);
  EXPECT_EQ(node.gpu_trouble, "");
}

TEST(NvmlThread, ASampleThatIsLateIsMissingAndLaterOnesAreTaken) {
  FakeGpus fake;
  Node node;
  CounterSet set;
  const auto thread = probe_gpus(node);
  set.add_gpus("node07", thread);
  fake.gpu(1)["energy_j"] = {{"hang_s", 0.5}};
  fake.write();
  EXPECT_FALSE(thread->call([](Nvml& nvml) { nvml.energy_j(1); }, 0.1));
  EXPECT_FALSE(thread->call([](Nvml&) {}, 0.1)) << "the driver is busy with the call before";
  EXPECT_FALSE(thread->stuck());
  EXPECT_TRUE(thread->call([](Nvml&) {}, 10));
  EXPECT_FALSE(std::isnan(set.read()[index_of(set, "node07/gpu1", "nvml_ecc_uncorrected")]));
}

}  // namespace
}  // namespace assay
