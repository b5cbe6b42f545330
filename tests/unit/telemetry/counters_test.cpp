// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>

#include "telemetry/counters.hpp"
#include "telemetry/driver_stats.hpp"
#include "tests/unit/topology_tree.hpp"

namespace assay {
namespace {
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using testing::Tree;

/// Index of a source; fails the test when there is none, or when --require does not know its name.
std::size_t at(CounterSet& set, const std::string& entity, const std::string& counter) {
  EXPECT_TRUE(names_counter(counter)) << counter;
  for (std::size_t i = 0; i < set.sources().size(); ++i) {
    if (set.sources()[i].entity_name == entity && set.sources()[i].counter == counter) return i;
  }
  throw std::runtime_error("no counter " + counter + " of " + entity);
}

bool has(CounterSet& set, const std::string& entity, const std::string& counter) {
  for (const auto& source : set.sources()) {
    if (source.entity_name == entity && source.counter == counter) return true;
  }
  return false;
}

TEST(Counters, AnEmptyMachineOffersNothing) {
  Tree tree;
  CounterSet set = CounterSet::probe("n", tree.root());
  EXPECT_TRUE(set.sources().empty());
  EXPECT_TRUE(set.read().empty());
  EXPECT_THAT(set.unsupported_families(),
              ElementsAre("edac", "aer", "mce", "thermal_throttle", "nic", "driver", "infiniband"));
  for (const std::string& family : set.unsupported_families()) EXPECT_TRUE(names_counter(family)) << family;
}

TEST(Counters, TheirNamesAreKnownOnEveryMachine) {
  for (const char* name :
       {"nvml", "nvml_pcie_fatal", "xid_79", "rx", "edac_*", "driver_errors:rx_crc", "driver"})
    EXPECT_TRUE(names_counter(name)) << name;
  for (const char* name : {"edac_cf", "tx_byte", "xid79", "coverage", "", "r"})
    EXPECT_FALSE(names_counter(name)) << name;
}

TEST(Counters, WhatDriversKeepOfErrorsAndFlow) {
  Tree tree;
  tree.file("/sys/class/net/eth0/device/vendor", "0x15b3\n").file("/sys/class/net/veth7/operstate", "up\n");
  const std::string stats =
      "NIC statistics:\n     rx_packets: 12\n     rx_crc_errors_phy: 3\n     rx_prio3_pause: 40\n"
      "     rx_corrected_bits_phy: 999\n     rx_fec_uncorrectable_blocks: 0\n     np_cnp_sent: 7\n     "
      "garbage\n     rx_xdp_discard: x\n";
  tree.file("/ethtool-S/eth0", stats).file("/ethtool-S/veth7", stats);
  CounterSet set = CounterSet::probe("n", tree.root());
  const auto before = set.read();
  EXPECT_EQ(before[at(set, "n/eth0", "driver_errors:rx_crc_errors_phy")], 3);
  EXPECT_EQ(before[at(set, "n/eth0", "driver_errors:rx_fec_uncorrectable_blocks")], 0);
  EXPECT_EQ(before[at(set, "n/eth0", "driver_flow:rx_prio3_pause")], 40);
  EXPECT_EQ(before[at(set, "n/eth0", "driver_flow:np_cnp_sent")], 7);
  EXPECT_TRUE(set.sources()[at(set, "n/eth0", "driver_errors:rx_crc_errors_phy")].error);
  EXPECT_FALSE(set.sources()[at(set, "n/eth0", "driver_flow:np_cnp_sent")].error);
  for (const char* other :
       {"driver_errors:rx_packets", "driver_flow:rx_packets", "driver_errors:rx_corrected_bits_phy"})
    EXPECT_FALSE(has(set, "n/eth0", other)) << other;
  EXPECT_FALSE(has(set, "n/veth7", "driver_flow:np_cnp_sent")) << "no adapter behind it";
  tree.file("/ethtool-S/eth0", "NIC statistics:\n     rx_crc_errors_phy: 5\n");
  const auto after = set.read();
  EXPECT_EQ(after[at(set, "n/eth0", "driver_errors:rx_crc_errors_phy")], 5);
  EXPECT_TRUE(std::isnan(after[at(set, "n/eth0", "driver_flow:np_cnp_sent")])) << "it was there before";
}

TEST(Counters, OfADriverThatAnswersSlowlyTheyAreUnsupported) {
  Tree tree;
  tree.file("/sys/class/net/eth0/device/vendor", "0x15b3\n");
  std::string stats = "NIC statistics:\n     rx_crc_errors_phy: 3\n     rx_prio3_pause: 40\n";
  for (int i = 0; i < 300'000; ++i) stats += "     queue" + std::to_string(i) + "_packets: 1\n";
  tree.file("/ethtool-S/eth0", stats);
  CounterSet set = CounterSet::probe("n", tree.root());
  EXPECT_FALSE(has(set, "n/eth0", "driver_errors:rx_crc_errors_phy"));
  std::vector<std::string> unsupported;
  for (const auto& source : set.unsupported_sources())
    unsupported.push_back(source.entity_kind + " " + source.entity_name + " " + source.counter);
  EXPECT_THAT(unsupported, ElementsAre("nic n/eth0 driver_errors:rx_crc_errors_phy",
                                       "nic n/eth0 driver_flow:rx_prio3_pause"));
}

TEST(Counters, TheRunningSystemsDriversAnswerOrDoNot) {
  EXPECT_TRUE(driver_stats("no-such-interface").empty());
  EXPECT_TRUE(driver_stats(std::string(200, 'x')).empty());
  for (const auto& [name, value] : driver_stats("lo")) EXPECT_GE(value, 0) << name;
}

TEST(Counters, EdacByControllerAndModule) {
  Tree tree;
  const std::string mc = "/sys/devices/system/edac/mc/";
  tree.file(mc + "mc0/ce_count", "3\n")
      .file(mc + "mc0/ue_count", "0\n")
      .file(mc + "mc1/ce_count", "4\n")
      .file(mc + "mc1/ue_count", "1\n");
  tree.file(mc + "mc0/dimm0/dimm_label", "DIMM A1\n")
      .file(mc + "mc0/dimm0/dimm_ce_count", "3\n")
      .file(mc + "mc0/dimm0/dimm_ue_count", "0\n");
  tree.file(mc + "mc1/dimm2/dimm_label", "CPU_SrcID#1\n")
      .file(mc + "mc1/dimm2/dimm_ce_count", "4\n")
      .file(mc + "mc1/dimm2/dimm_ue_count", "1\n");
  tree.file("/sys/firmware/dmi/tables/DMI", testing::smbios_module({"DIMM A1", ""}));
  CounterSet set = CounterSet::probe("n", tree.root());
  const auto values = set.read();
  EXPECT_EQ(values[at(set, "n", "edac_ce")], 7);
  EXPECT_EQ(values[at(set, "n", "edac_ue")], 1);
  EXPECT_EQ(values[at(set, "n/DIMM_A1", "edac_ce")], 3) << "the label is the firmware's name of the slot";
  EXPECT_EQ(set.sources()[at(set, "n/DIMM_A1", "edac_ce")].entity_kind, "dimm");
  EXPECT_EQ(values[at(set, "n", "edac_ue:CPU_SrcID#1")], 1);
  EXPECT_THAT(set.unsupported_families(), Not(Contains("edac")));
}

/// AMD's driver counts by chip select: the parts of a controller are ranks of modules.
TEST(Counters, EdacByRank) {
  Tree tree;
  const std::string mc = "/sys/devices/system/edac/mc/mc0/";
  tree.file(mc + "ce_count", "15\n").file(mc + "ue_count", "0\n");
  const auto rank = [&](int number, const char* label, int corrected) {
    const std::string directory = mc + "rank" + std::to_string(number) + "/";
    tree.file(directory + "dimm_label", std::string(label) + "\n")
        .file(directory + "dimm_ce_count", std::to_string(corrected) + "\n")
        .file(directory + "dimm_ue_count", "0\n");
  };
  rank(0, "mc#0csrow#0channel#0", 1);
  rank(1, "P0 CHANNEL A", 2);
  rank(2, "P0 CHANNEL A", 3);
  rank(3, "", 4);
  rank(4, "twice", 0);
  rank(10, "twice", 5);
  tree.file("/sys/firmware/dmi/tables/DMI", testing::smbios_module({"P0 CHANNEL A", ""}));
  CounterSet set = CounterSet::probe("n", tree.root());
  const auto values = set.read();
  EXPECT_EQ(values[at(set, "n", "edac_ce")], 15);
  EXPECT_EQ(values[at(set, "n", "edac_ce:mc#0csrow#0channel#0")], 1);
  EXPECT_EQ(values[at(set, "n/P0_CHANNEL_A", "edac_ce")], 5) << "both ranks of the module";
  EXPECT_EQ(values[at(set, "n/P0_CHANNEL_A", "edac_ue")], 0);
  EXPECT_EQ(values[at(set, "n", "edac_ce:mc0/rank3")], 4);
  EXPECT_EQ(values[at(set, "n", "edac_ce:mc0/rank4")], 0) << "a label of two parts names neither";
  EXPECT_EQ(values[at(set, "n", "edac_ce:mc0/rank10")], 5);
}

TEST(Counters, ACounterThatDisappearsReadsNan) {
  Tree tree;
  tree.file("/sys/devices/system/edac/mc/mc0/ce_count", "3\n")
      .file("/sys/devices/system/edac/mc/mc1/ce_count", "2\n");
  CounterSet set = CounterSet::probe("n", tree.root());
  EXPECT_EQ(set.read()[at(set, "n", "edac_ce")], 5);
  tree.remove("/sys/devices/system/edac/mc/mc1");
  EXPECT_TRUE(std::isnan(set.read()[at(set, "n", "edac_ce")]))
      << "a partial sum would look like a counter that fell";
  tree.file("/sys/devices/system/edac/mc/mc1/ce_count", "garbage\n");
  EXPECT_TRUE(std::isnan(set.read()[at(set, "n", "edac_ce")]));
  tree.file("/sys/devices/system/edac/mc/mc1/ce_count", "9\n");
  EXPECT_EQ(set.read()[at(set, "n", "edac_ce")], 12);
}

TEST(Counters, PcieErrorsNameTheDevice) {
  Tree tree;
  testing::add_ethernet(tree, "eno1", "18", 25000);
  const std::string nvme = testing::add_pci(tree, "3c", "0x010802", {}, {});
  const std::string nic = "/sys/devices/pci0000:00/0000:00:18.0/0000:18:00.0",
                    port = "/sys/devices/pci0000:00/0000:00:18.0";
  tree.file(nic + "/aer_dev_correctable", "RxErr 2\nBadTLP 1\nTOTAL_ERR_COR 3\n");
  tree.file(nic + "/aer_dev_fatal", "Undefined 0\nTOTAL_ERR_FATAL 0\n");
  tree.file(nvme + "/aer_dev_nonfatal", "TOTAL_ERR_NONFATAL 5\n");
  tree.file(port + "/aer_dev_correctable", "TOTAL_ERR_COR 11\n");
  CounterSet set = CounterSet::probe("n", tree.root());
  const auto values = set.read();
  EXPECT_EQ(values[at(set, "n/eno1", "aer_correctable")], 3);
  EXPECT_EQ(values[at(set, "n/eno1", "aer_fatal")], 0);
  EXPECT_EQ(values[at(set, "n", "aer_nonfatal:0000:3c:00.0")], 5);
  EXPECT_EQ(values[at(set, "n", "aer_correctable")], 11) << "bridges in one sum";
}

TEST(Counters, MachineChecksAndThrottling) {
  Tree tree;
  testing::add_cpus(tree, 2, 2, 2);
  tree.file("/proc/interrupts",
            "            CPU0       CPU1\n  0:   12   0  IO-APIC timer\nMCE:          1          2   Machine "
            "check exceptions\n"
            "MCP:        100        100   Machine check polls\nTHR:          0          4   Threshold APIC "
            "interrupts\n");
  for (int cpu = 0; cpu < 8; ++cpu) {
    const std::string base = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/thermal_throttle/";
    tree.file(base + "core_throttle_count", "1\n").file(base + "package_throttle_count", "10\n");
  }
  CounterSet set = CounterSet::probe("n", tree.root());
  const auto values = set.read();
  EXPECT_EQ(values[at(set, "n", "mce_uncorrected")], 3);
  EXPECT_EQ(values[at(set, "n", "mce_threshold")], 4);
  EXPECT_FALSE(has(set, "n", "mce_deferred"));
  EXPECT_EQ(values[at(set, "n", "throttle_core")], 4) << "hardware threads of a core show one count";
  EXPECT_EQ(values[at(set, "n", "throttle_package")], 20);
}

TEST(Counters, InterfacesAndPorts) {
  Tree tree;
  testing::add_ethernet(tree, "eno1", "18", 25000);
  testing::add_virtual(tree, "lo", "772", "unknown");
  testing::add_fabric(tree, "mlx5_0", "3b", "InfiniBand", "400 Gb/sec (4X NDR)");
  tree.file("/sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data", "100\n");
  tree.file("/sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error", "6\n");
  CounterSet set = CounterSet::probe("n", tree.root());
  const auto values = set.read();
  EXPECT_EQ(values[at(set, "n/mlx5_0:1", "tx_bytes")], 400) << "counted in words of four bytes";
  EXPECT_EQ(values[at(set, "n/mlx5_0:1", "symbol_error")], 6);
  EXPECT_TRUE(set.sources()[at(set, "n/mlx5_0:1", "symbol_error")].error);
  EXPECT_FALSE(set.sources()[at(set, "n/mlx5_0:1", "tx_bytes")].error);
  EXPECT_TRUE(set.sources()[at(set, "n/eno1", "rx_crc_errors")].error);
  EXPECT_EQ(values[at(set, "n/eno1", "carrier_changes")], 1);
  EXPECT_TRUE(has(set, "n/lo", "rx_bytes"));
  EXPECT_FALSE(has(set, "n/lo", "rx_errors")) << "loopback has no wire";
}

TEST(Counters, APortCounterAtItsMaximumCountsNoFurther) {
  Tree tree;
  testing::add_fabric(tree, "mlx5_0", "3b", "InfiniBand", "400 Gb/sec (4X NDR)");
  const std::string counters = "/sys/class/infiniband/mlx5_0/ports/1/counters/";
  tree.file(counters + "symbol_error", "65535\n")
      .file(counters + "link_downed", "255\n")
      .file(counters + "link_error_recovery", "254\n")
      .file(counters + "local_link_integrity_errors", "15\n")
      .file(counters + "port_rcv_errors", "65536\n")
      .file(counters + "port_rcv_data", "4294967295\n");
  CounterSet set = CounterSet::probe("n", tree.root());
  std::vector<std::string> saturated;
  for (const auto& source : set.unsupported_sources())
    if (source.saturated) saturated.push_back(source.entity_name + " " + source.counter);
  EXPECT_THAT(saturated, ElementsAre("n/mlx5_0:1 rx_bytes", "n/mlx5_0:1 symbol_error",
                                     "n/mlx5_0:1 link_downed", "n/mlx5_0:1 local_link_integrity_errors"));
  EXPECT_FALSE(has(set, "n/mlx5_0:1", "symbol_error"));
  EXPECT_EQ(set.read()[at(set, "n/mlx5_0:1", "port_rcv_errors")], 65536) << "an adapter with wider counters";
  tree.file(counters + "link_error_recovery", "255\n");
  EXPECT_EQ(set.read()[at(set, "n/mlx5_0:1", "link_error_recovery")], 255) << "an increase during the run";
}

}  // namespace
}  // namespace assay
