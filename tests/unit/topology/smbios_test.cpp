// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>

#include "tests/unit/topology_tree.hpp"
#include "topology/smbios.hpp"

namespace assay {
namespace {
using testing::Module;
using testing::smbios_module;

std::string system_structure(char fill) {
  std::string formatted(0x1b - 4, '\0');
  for (std::size_t i = 0; i < 16; ++i) formatted[4 + i] = fill == 'u' ? static_cast<char>(i + 1) : fill;
  return testing::smbios_structure(1, formatted, {"Acme"});
}

TEST(Smbios, ReadsModulesAndBandwidth) {
  std::string table = system_structure('u');
  table += smbios_module({"CPU0_DIMM_A1", "BANK 0"});
  Module large{"CPU0_DIMM_B1", "BANK 1"};
  large.megabytes = 65536;  // beyond 15 bits: the extended size
  table += smbios_module(large);
  Module empty{"CPU0_DIMM_C1", "BANK 2"};
  empty.megabytes = 0;
  table += smbios_module(empty);
  table += testing::smbios_structure(127, "", {});
  table += smbios_module({"after the end", ""});
  const SmbiosTables tables = parse_smbios(table);
  EXPECT_EQ(tables.system_uuid, "04030201-0605-0807-090a-0b0c0d0e0f10");
  ASSERT_EQ(tables.dimms.size(), 2U);
  EXPECT_EQ(tables.empty_slots, 1);
  EXPECT_EQ(tables.dimms[0].slot, "CPU0_DIMM_A1");
  EXPECT_EQ(tables.dimm_serials.at(0), "S1");
  EXPECT_EQ(tables.dimms[0].part, "M393");
  EXPECT_EQ(tables.dimms[0].manufacturer, "Acme");
  EXPECT_DOUBLE_EQ(tables.dimms[1].bytes, 65536.0 * 1048576.0);
  EXPECT_DOUBLE_EQ(tables.dimms[0].configured_mt_s, 4400);
  EXPECT_DOUBLE_EQ(tables.memory_bandwidth_bytes_per_s, 2 * 4400e6 * 8);
}

TEST(Smbios, TwoModulesOnOneChannelCountOnce) {
  const std::string table =
      smbios_module({"DIMM_A1", ""}) + smbios_module({"DIMM_A2", ""}) + smbios_module({"DIMM_B1", ""});
  EXPECT_DOUBLE_EQ(parse_smbios(table).memory_bandwidth_bytes_per_s, 2 * 4400e6 * 8);
}

TEST(Smbios, BandwidthIsUnsupportedWhenOneModuleIsUnclear) {
  Module silent{"DIMM_B1", ""};
  silent.configured = 0;
  const SmbiosTables tables = parse_smbios(smbios_module({"DIMM_A1", ""}) + smbios_module(silent));
  EXPECT_TRUE(std::isnan(tables.memory_bandwidth_bytes_per_s));
  EXPECT_TRUE(std::isnan(tables.dimms[1].configured_mt_s));
  EXPECT_TRUE(std::isnan(parse_smbios(smbios_module({"A1", ""})).memory_bandwidth_bytes_per_s))
      << "the letter may be the socket";
  EXPECT_TRUE(std::isnan(parse_smbios("").memory_bandwidth_bytes_per_s));
}

TEST(Smbios, ChannelNames) {
  EXPECT_EQ(memory_channel("DIMM 0", "P0 CHANNEL A"), "P0 CHANNEL A");
  EXPECT_EQ(memory_channel("DIMM 0", "NODE 1 CHANNEL 2 DIMM 0"), "NODE 1 CHANNEL 2");
  EXPECT_EQ(memory_channel("CPU0_ChannelB_Dimm1", ""), "CPU0_CHANNELB");
  EXPECT_EQ(memory_channel("P1-DIMMA1", "P0_Node0"), "P1-DIMMA");
  EXPECT_EQ(memory_channel("PROC 1 DIMM 12", ""), "");
  EXPECT_EQ(memory_channel("A1", ""), "");
}

TEST(Smbios, SlotsOfOneNameAreToldApart) {
  const SmbiosTables tables =
      parse_smbios(smbios_module({"DIMM 0", "P0 CHANNEL A"}) + smbios_module({"DIMM 0", "P0 CHANNEL B"}) +
                   smbios_module({"DIMM 0", "P0 CHANNEL B"}));
  ASSERT_EQ(tables.dimms.size(), 3U);
  EXPECT_EQ(tables.dimms[0].slot, "P0 CHANNEL A DIMM 0");
  EXPECT_EQ(tables.dimms[1].slot, "P0 CHANNEL B DIMM 0");
  EXPECT_EQ(tables.dimms[2].slot, "P0 CHANNEL B DIMM 0 #2");
}

TEST(Smbios, BrokenTablesNeverReachBeyondTheirEnd) {
  const std::string good = system_structure('u') + smbios_module({"DIMM_A1", "B"});
  for (std::size_t length = 0; length < good.size(); ++length) {
    const std::string cut = good.substr(0, length);
    EXPECT_TRUE(parse_smbios(cut).dimms.empty()) << "cut at " << length;
  }
  std::string wild = good;
  wild[1] = '\x02';  // shorter than its own header
  EXPECT_TRUE(parse_smbios(wild).dimms.empty());
  wild = good;
  for (std::size_t i = 0; i < wild.size(); ++i) {  // any one byte wrong: no crash, no endless loop
    for (const char c : {'\x00', '\xff', '\x11'}) {
      std::string broken = wild;
      broken[i] = c;
      EXPECT_LE(parse_smbios(broken).dimms.size(), 2U);
    }
  }
}

TEST(Smbios, PlaceholdersAreNoIdentity) {
  EXPECT_EQ(parse_smbios(system_structure('\xff')).system_uuid, "");
  EXPECT_EQ(parse_smbios(system_structure('\0')).system_uuid, "");
  EXPECT_FALSE(usable_uuid("00000000-0000-0000-0000-000000000000"));
  EXPECT_FALSE(usable_uuid("not a uuid"));
  EXPECT_TRUE(usable_uuid("4c4c4544-0042-3510-8054-b7c04f4d5331"));
  EXPECT_EQ(firmware_text(" Not Specified "), "");
}

}  // namespace
}  // namespace assay
