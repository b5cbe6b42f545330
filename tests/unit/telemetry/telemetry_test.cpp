// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "base/clock.hpp"
#include "fake_gpus.hpp"
#include "run/controller.hpp"
#include "telemetry/telemetry.hpp"
#include "tests/unit/topology_tree.hpp"

namespace assay {
namespace {
using testing::FakeGpus;
using testing::Tree;

/// Takes until there are `samples` of a GPU.
TelemetryChunk::Series sampled(Telemetry& telemetry, const std::string& name, std::size_t samples,
                               std::vector<TelemetryChunk::Flag>* flags = nullptr) {
  TelemetryChunk::Series all;
  for (const double begin = now_s(); all.t.size() < samples && now_s() - begin < 10;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    TelemetryChunk chunk = telemetry.take();
    if (flags != nullptr) flags->insert(flags->end(), chunk.flags.begin(), chunk.flags.end());
    for (const auto& series : chunk.series) {
      if (series.entity_name != name) continue;
      all.t.insert(all.t.end(), series.t.begin(), series.t.end());
      for (const auto& [quantity, values] : series.values) {
        auto& column = all.values[quantity];
        column.insert(column.end(), values.begin(), values.end());
      }
    }
  }
  return all;
}

TEST(Telemetry, SamplesGpus) {
  FakeGpus fake;
  fake.gpu(1).erase("memory_temperature_c");
  fake.gpu(1)["utilization"] = {{"gpu", 75}, {"memory", 20}};
  fake.write();
  Node node;
  Telemetry telemetry("node07", probe_gpus(node), 10, 1, "/nowhere");
  const auto series = sampled(telemetry, "node07/gpu1", 4);
  ASSERT_GE(series.t.size(), 4U);
  EXPECT_FALSE(series.values.contains("memory_temperature")) << "what a GPU does not have has no column";
  EXPECT_TRUE(std::isnan(series.values.at("power")[0])) << "there is no difference yet";
  // Over all samples: a busy machine may hold the thread up between reading the energy and the clock.
  double energy = 0;
  for (std::size_t i = 1; i < series.t.size(); ++i)
    energy += series.values.at("power")[i] * (series.t[i] - series.t[i - 1]);
  EXPECT_NEAR(energy / (series.t.back() - series.t.front()), 320, 80);
  EXPECT_EQ(series.values.at("sm_clock")[1], 1.98e9);
  EXPECT_NEAR(series.values.at("temperature")[1], 312.15, 1e-9);
  EXPECT_EQ(series.values.at("utilisation")[1], 0.75);
  EXPECT_EQ(series.values.at("pcie_width")[1], 16);
  for (const auto& [quantity, values] : series.values) EXPECT_EQ(values.size(), series.t.size()) << quantity;
}

TEST(Telemetry, AGpuHasTheNumberOfTheDriver) {
  FakeGpus fake;
  fake.gpu(0)["no_handle"] = true;
  fake.gpu(1)["throttle_reasons"] = nvml::throttle::sw_power_cap;
  fake.write();
  Node node;
  Telemetry telemetry("node07", probe_gpus(node), 10, 1, "/nowhere");
  std::vector<TelemetryChunk::Flag> flags;
  EXPECT_GE(sampled(telemetry, "node07/gpu1", 1, &flags).t.size(), 1U);
  ASSERT_FALSE(flags.empty());
  EXPECT_EQ(flags[0].entity_name, "node07/gpu1");
}

TEST(Telemetry, FlagsAreToldWhenTheyChange) {
  FakeGpus fake;
  fake.gpu(0)["throttle_reasons"] = nvml::throttle::sw_power_cap | nvml::throttle::hw_thermal;
  fake.write();
  Node node;
  Telemetry telemetry("node07", probe_gpus(node), 10, 1, "/nowhere");
  std::vector<TelemetryChunk::Flag> flags;
  sampled(telemetry, "node07/gpu0", 3, &flags);
  fake.gpu(0)["throttle_reasons"] = nvml::throttle::sw_power_cap;
  fake.write();
  sampled(telemetry, "node07/gpu0", 3, &flags);
  std::vector<std::string> told;
  for (const auto& flag : flags)
    if (flag.entity_name == "node07/gpu0") told.push_back(flag.flag + (flag.set ? "+" : "-"));
  EXPECT_THAT(told, ::testing::ElementsAre("sw_power_cap+", "hw_thermal+", "hw_thermal-"));
}

TEST(Telemetry, OfReadingsThatAreNotKeptTheFlagsAreTold) {
  FakeGpus fake;
  fake.gpu(0)["throttle_reasons"] = 0;
  fake.write();
  Node node;
  Telemetry telemetry("node07", probe_gpus(node), 10, 1000, "/nowhere");
  std::vector<TelemetryChunk::Flag> flags;
  sampled(telemetry, "node07/gpu0", 1);
  fake.gpu(0)["throttle_reasons"] = nvml::throttle::hw_thermal;
  fake.write();
  std::size_t kept = 0;
  for (int wait = 0; wait < 200 && (flags.empty() || wait < 10); ++wait) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const TelemetryChunk chunk = telemetry.take();
    for (const auto& series : chunk.series) kept += series.t.size();
    flags.insert(flags.end(), chunk.flags.begin(), chunk.flags.end());
  }
  ASSERT_EQ(flags.size(), 1U);
  EXPECT_EQ(flags[0].flag, "hw_thermal");
  EXPECT_EQ(kept, 0U);
}

TEST(Telemetry, ManyFlagsOfAGpuLoseNothingThatClearsOneThatIsRecorded) {
  constexpr unsigned long long lasting = nvml::throttle::sw_thermal, flapping = nvml::throttle::sw_power_cap;
  ThrottleFlags flags;
  std::vector<TelemetryChunk::Flag> told;
  for (int i = 0; i < 5000; ++i) flags.add(i, lasting | (i % 2 == 0 ? flapping : 0), "n/gpu0", told);
  flags.add(5000, 0, "n/gpu0", told);
  std::map<std::string, int> open;
  for (const auto& flag : told) open[flag.flag] += flag.set ? 1 : -1;
  EXPECT_THAT(open, ::testing::ElementsAre(std::pair("sw_power_cap", 0), std::pair("sw_thermal", 0)));
  EXPECT_EQ(told.back().flag, "sw_thermal");
  EXPECT_NEAR(static_cast<double>(told.size()), 4096, 2);
  EXPECT_EQ(2500 - static_cast<std::size_t>(std::ranges::count(told, true, &TelemetryChunk::Flag::set)) + 1,
            flags.take());
  flags.add(5001, flapping, "n/gpu0", told);
  EXPECT_TRUE(told.back().set) << "the next case has its own limit";
}

TEST(Telemetry, PowerIsThatBetweenMovesOfTheEnergyCounter) {
  PowerOfMoves power;
  EXPECT_TRUE(std::isnan(power.add(0, 10))) << "nothing to compare with";
  EXPECT_TRUE(std::isnan(power.add(0.1, 10))) << "it stands still, and the GPU takes power";
  EXPECT_NEAR(power.add(0.2, 70), 300, 1e-9);
  EXPECT_TRUE(std::isnan(power.add(0.3, unsupported)));
  EXPECT_NEAR(power.add(0.4, 130), 300, 1e-9);
  EXPECT_TRUE(std::isnan(power.add(0.5, 5))) << "the driver was loaded again";
  EXPECT_NEAR(power.add(0.6, 35), 300, 1e-9);
}

TEST(Telemetry, ASensorThatHangsDelaysNoCase) {
  FakeGpus fake;
  Node node;
  double begin = 0;
  {
    Telemetry telemetry("node07", probe_gpus(node), 10, 1, "/nowhere");
    sampled(telemetry, "node07/gpu0", 1);
    fake.gpu(1)["temperature_c"] = {{"hang_s", 30}};
    fake.write();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    begin = now_s();
    telemetry.take();
    EXPECT_LT(now_s() - begin, 0.1);
  }
  EXPECT_LT(now_s() - begin, 4);
}

TEST(NodeSensors, OneClockOfEachPackageTheHottestAndPowerFromEnergy) {
  Tree tree;
  for (int cpu = 0; cpu < 4; ++cpu) {
    const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu);
    tree.file(folder + "/cpufreq/scaling_cur_freq", std::to_string(2000000 + 500000 * cpu));
    tree.file(folder + "/topology/physical_package_id", cpu < 2 ? "0" : "1");
  }
  tree.file("/sys/class/hwmon/hwmon0/name", "nvme").file("/sys/class/hwmon/hwmon0/temp1_input", "90000");
  tree.file("/sys/class/hwmon/hwmon1/name", "coretemp").file("/sys/class/hwmon/hwmon1/temp1_input", "50000");
  tree.file("/sys/class/hwmon/hwmon2/name", "coretemp").file("/sys/class/hwmon/hwmon2/temp1_input", "61000");
  tree.file("/sys/class/powercap/intel-rapl:0/name", "package-0")
      .file("/sys/class/powercap/intel-rapl:0/max_energy_range_uj", "1000000000");
  tree.file("/sys/class/powercap/intel-rapl:0/energy_uj", "990000000");
  tree.file("/sys/class/powercap/intel-rapl:0:0/name", "dram")
      .file("/sys/class/powercap/intel-rapl:0:0/energy_uj", "1");
  tree.file("/sys/class/powercap/intel-rapl-mmio:0/name", "package-0")
      .file("/sys/class/powercap/intel-rapl-mmio:0/max_energy_range_uj", "1000000000");
  tree.file("/sys/class/powercap/intel-rapl-mmio:0/energy_uj", "990000000");
  NodeSensors sensors(tree.root());
  EXPECT_TRUE(std::isnan(sensors.read(10).at("power")));
  for (const char* zone : {"intel-rapl:0", "intel-rapl-mmio:0"})
    tree.file("/sys/class/powercap/" + std::string(zone) + "/energy_uj", "90000000");
  const auto values = sensors.read(11);
  EXPECT_EQ(values.at("cpu_clock"), 2.5e9) << "CPUs 0 and 2";
  EXPECT_NEAR(values.at("temperature"), 334.15, 1e-9);
  EXPECT_NEAR(values.at("power"), 100, 1e-6) << "over the end of its range";
  EXPECT_TRUE(NodeSensors("/nowhere").read(1).empty());
}

TEST(Telemetry, GoesIntoTheCaseThatEnds) {
  Topology topology;
  topology.nodes.emplace_back().hostname = "a";
  topology.nodes[0].gpus = {Gpu()};
  topology.ranks.emplace_back();
  const EntityTable entities(topology);
  const Json told = {{"series",
                      {{"device", "a/gpu0", {1.0, 2.0}, {{"power", {nullptr, 300.0}}}},
                       {"device", "b/gpu0", {1.0}, {{"power", {1.0}}}}}},
                     {"flags", {{1.5, "device", "a/gpu0", "hw_thermal", 1}}}};
  results::CaseBundle bundle;
  add_telemetry(told, entities, bundle);
  const std::int32_t gpu = entities.find("device", "a/gpu0");
  EXPECT_EQ(bundle.telemetry.entity, (std::vector<std::int32_t>{gpu, gpu}));
  EXPECT_TRUE(std::isnan(bundle.telemetry.number.at("power")[0]));
  EXPECT_EQ(bundle.telemetry.unit.at("power"), "W");
  ASSERT_EQ(bundle.flags.size(), 1U);
  EXPECT_EQ(bundle.flags[0].flag, "hw_thermal");
}

TEST(Counters, GoIntoTheCaseThatEnds) {
  Topology topology;
  topology.nodes.emplace_back().hostname = "a";
  topology.nodes[0].gpus.edit().resize(1);
  topology.ranks.emplace_back();
  const EntityTable entities(topology);
  constexpr double nan = results::not_taken;
  Json told = Json::array();
  tell_counter(told, "device", "a/gpu0", "nvml_energy_j", 1.5, 2.5);
  tell_counter(told, "device", "a/gpu0", "nvml_ecc_corrected", 7, 7);
  tell_counter(told, "device", "a/gpu0", "nvml_xid", nan, nan);
  tell_counter(told, "node", "a", "edac_ce", 3, nan);
  tell_counter(told, "node", "a", "edac_ue", nan, 3);
  EXPECT_EQ(told.size(), 2U);
  results::CaseBundle bundle;
  bundle.data.suite = "gemm", bundle.data.name = "x";
  add_counters(Json::parse(told.dump()), entities, bundle);
  std::string rows;
  for (const auto& c : bundle.counters) {
    EXPECT_EQ(c.case_path, "gemm/x");
    EXPECT_EQ(c.entity,
              c.counter.str().starts_with("nvml") ? entities.find("device", "a/gpu0") : entities.node(0));
    rows += fmt::format("{} {} {}, ", c.counter.str(), c.before, c.after);
  }
  EXPECT_EQ(
      rows,
      "nvml_energy_j 1.5 2.5, nvml_ecc_corrected 7 7, nvml_xid nan nan, edac_ce 3 nan, edac_ue nan 3, ");
}

}  // namespace
}  // namespace assay
