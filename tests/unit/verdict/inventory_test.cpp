// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "results/inventory_names.hpp"
#include "tests/unit/fabricate.hpp"

namespace assay {
namespace {

using namespace fabricate;
namespace column = results::inventory;
using ::testing::HasSubstr;

results::InventoryTable& node_table(results::Results& r) {
  auto& t = r.inventory["node"];
  t.entity = rows_of_kind(r, "node");
  return t;
}

TEST(VerdictInventory, DeviantNodeIsNamedAgainstTheMajority) {
  auto r = healthy(5);
  node_table(r).text["kernel"] = {"6.1", "6.1", "6.0", "6.1", "6.1"};
  const auto v = judge(r);
  EXPECT_EQ(v.state, "WARN");
  ASSERT_EQ(v.findings.size(), 1U);
  EXPECT_EQ(v.findings[0].name, "node2");
  EXPECT_EQ(v.findings[0].kind, "mismatch");
  EXPECT_EQ(v.findings[0].action, "CONFIG");
  EXPECT_THAT(v.findings[0].text, HasSubstr("kernel is 6.0, 4 other nodes have 6.1"));
}

TEST(VerdictInventory, LessOfAPartFailsAndMoreWarns) {
  auto r = healthy(4);
  node_table(r).number[column::memory_bytes] = {64e9, 64e9, 64e9, 56e9};
  auto v = judge(r);
  EXPECT_EQ(v.state, "FAIL");
  EXPECT_EQ(v.findings[0].kind, "missing");
  EXPECT_EQ(v.findings[0].name, "node3");
  node_table(r).number[column::memory_bytes] = {64e9, 64e9, 64e9, 72e9};
  EXPECT_EQ(judge(r).state, "WARN");
}

TEST(VerdictInventory, OnePercentInfoColumnsAndUnsupportedAreIgnored) {
  auto r = healthy(4);
  node_table(r).number[column::memory_bytes] = {64e9, 64.3e9, 63.9e9, results::not_taken};
  node_table(r).number["memory_available_info"] = {1, 2, 3, 4};
  node_table(r).text["kernel_cmdline_info"] = {"a", "b", "c", "d"};
  EXPECT_EQ(judge(r).state, "PASS");
}

/// One of 192 cores less is within 1 %: that node was equal to the others, and a stratum without peers.
TEST(VerdictInventory, CountsAreExact) {
  for (const char* count : {"cores", "pus", "pci_links"}) {
    auto r = healthy(4);
    node_table(r).number[count] = {192, 192, 192, 191};
    const auto v = judge(r);
    EXPECT_EQ(v.state, "FAIL") << count;
    ASSERT_EQ(v.findings.size(), 1U) << count;
    EXPECT_EQ(v.findings[0].kind, "missing");
    EXPECT_EQ(v.findings[0].name, "node3");
    EXPECT_EQ(*v.findings[0].reference, 192);
  }
  // A second kind of node is no loss.
  auto r = healthy(12);
  node_table(r).number["cores"] = {192, 192, 192, 192, 192, 192, 192, 192, 191, 191, 191, 191};
  const auto v = judge(r);
  EXPECT_EQ(v.state, "WARN");
  ASSERT_EQ(v.findings.size(), 1U);
  EXPECT_EQ(v.findings[0].members.size(), 4U);
}

/// Values were compared with the lowest of their group, so one below all others shifted the groups.
TEST(VerdictInventory, WhatMostHaveIsNotCountedFromAnOutlier) {
  auto r = healthy(8);
  node_table(r).number[column::memory_bytes] = {993e9,  1000e9, 1004e9, 1004e9,
                                                1004e9, 1004e9, 1004e9, 1004e9};
  auto v = judge(r);
  ASSERT_EQ(v.findings.size(), 1U) << all_reasons(v);
  EXPECT_EQ(v.findings[0].name, "node0");
  EXPECT_EQ(*v.findings[0].value, 993e9);
  EXPECT_EQ(*v.findings[0].reference, 1004e9);
  node_table(r).number[column::memory_bytes] = {991e9,  1000e9, 1000e9, 1000e9,
                                                1000e9, 1000e9, 1000e9, 1003e9};
  EXPECT_EQ(judge(r).state, "PASS");
}

TEST(VerdictInventory, WhatNobodyCouldReadIsNoMismatch) {
  auto r = healthy(4);
  node_table(r).text["governor"] = {"performance", "", "performance", "performance"};
  node_table(r).text[column::kernel_options] = {"", "", "", ""};
  EXPECT_EQ(judge(r).state, "PASS");
  node_table(r).text[column::kernel_options] = {"mitigations=off", "", "mitigations=off", "mitigations=off"};
  const auto v = judge(r);
  ASSERT_EQ(v.findings.size(), 1U);
  EXPECT_THAT(v.findings[0].text, HasSubstr("node1: kernel_options is nothing"));
}

TEST(VerdictInventory, TwoNodesThatDifferWarnNamingBoth) {
  auto r = healthy(2);
  node_table(r).number[column::memory_bytes] = {64e9, 32e9};
  const auto v = judge(r);
  EXPECT_EQ(v.state, "WARN");
  ASSERT_EQ(v.findings.size(), 1U);
  EXPECT_EQ(v.findings[0].kind, "mismatch");
  EXPECT_THAT(v.findings[0].text, HasSubstr("node0"));
  EXPECT_THAT(v.findings[0].text, HasSubstr("node1"));
}

TEST(VerdictInventory, SecondPopulationIsOneFinding) {
  auto r = healthy(12);
  node_table(r).text["bios"] = std::vector<std::string>(12, "1.0");
  for (const std::size_t i : {1U, 3U, 5U, 7U}) node_table(r).text["bios"][i] = "1.1";
  const auto v = judge(r);
  EXPECT_EQ(v.state, "WARN");
  ASSERT_EQ(v.findings.size(), 1U);
  EXPECT_EQ(v.findings[0].level, "cluster");
  EXPECT_EQ(v.findings[0].members.size(), 4U);
}

results::Results with_pci(const std::string& cls, double speed, double width, const std::string& hypervisor) {
  auto r = healthy(1);
  node_table(r).text["hypervisor"] = {hypervisor};
  auto& t = r.inventory["pci"];
  t.entity = {row_named(r, "node0/eth0")};
  t.text["device_class"] = {cls};
  t.text["address_info"] = {"0000:3b:00.0"};
  t.number[column::link_speed] = {speed};
  t.number[column::max_link_speed] = {16};
  t.number[column::link_width] = {width};
  t.number[column::max_link_width] = {16};
  return r;
}

TEST(VerdictInventory, DegradedPcieLinkFails) {
  const auto r = with_pci("network", 16, 8, "none");
  const auto v = judge(r);
  EXPECT_EQ(v.state, "FAIL");
  EXPECT_EQ(v.findings[0].name, "node0/eth0");
  EXPECT_THAT(v.findings[0].text, HasSubstr("0000:3b:00.0 is x8 of x16"));
  EXPECT_EQ(state_of(r, v, "node0/eth0"), "FAIL");
  EXPECT_EQ(judge(with_pci("nvme", 8, 16, "none")).state, "FAIL");
}

TEST(VerdictInventory, PcieIsNotJudgedWhereItTellsNothing) {
  EXPECT_EQ(judge(with_pci("network", 16, 16, "none")).state, "PASS");
  EXPECT_EQ(judge(with_pci("network", 2.5, 1, "kvm")).state, "PASS");  // a virtual machine
  EXPECT_EQ(judge(with_pci("bridge", 2.5, 1, "none")).state, "PASS");  // no part of ours
  EXPECT_EQ(judge(with_pci("network", 16, 0, "none")).state, "PASS");  // no link
  for (const char* gpu : {"display", "accelerator"}) {
    EXPECT_TRUE(judge(with_pci(gpu, 2.5, 16, "none")).findings.empty()) << "healthy GPUs slow down when idle";
    EXPECT_EQ(judge(with_pci(gpu, 16, 8, "none")).state, "FAIL");
  }
}

TEST(VerdictInventory, NicDownWhereItsTwinsAreUpFails) {
  auto r = healthy(4);
  auto& t = r.inventory["nic"];
  t.entity = rows_of_kind(r, "nic");
  t.text["state"] = {"up", "up", "down", "up"};
  const auto v = judge(r);
  EXPECT_EQ(v.state, "FAIL");
  EXPECT_EQ(v.findings[0].name, "node2/eth0");
  t.text["state"] = {"up", "up", "", "up"};  // nobody could read it
  EXPECT_EQ(judge(r).state, "PASS");
  t.text["state"] = {"up", "up", "init", "up"};
  EXPECT_THAT(judge(r).findings[0].text, HasSubstr(" is init, "));
  t.text["state"] = {"down", "down", "down", "down"};
  EXPECT_EQ(judge(r).state, "PASS");
  t.text["state"] = {"up", "down", "down", "down"};
  EXPECT_EQ(judge(r).state, "PASS");
}

TEST(VerdictInventory, NicAtHalfTheRateOfItsTwinsFails) {
  auto r = healthy(4);
  auto& t = r.inventory["nic"];
  t.entity = rows_of_kind(r, "nic");
  t.text["state"] = {"up", "up", "up", "up"};
  t.number["rate_bytes_per_s"] = {25e9, 25e9, 12.5e9, 25e9};
  const auto v = judge(r);
  EXPECT_EQ(v.state, "FAIL");
  ASSERT_EQ(v.findings.size(), 1U);
  EXPECT_EQ(v.findings[0].name, "node2/eth0");
  EXPECT_THAT(v.findings[0].text, HasSubstr("runs at 100 Gbit/s, eth0 at 200 Gbit/s on 3 other nodes"));
  t.text["driver"] = {"mlx5_core", "mlx5_core", "ixgbe", "mlx5_core"};
  EXPECT_EQ(judge(r).state, "PASS") << "another adapter of that name";
  t.text.erase("driver");
  // Half and half: nobody knows which is right. What is down has no rate to speak of.
  t.number["rate_bytes_per_s"] = {25e9, 25e9, 12.5e9, 12.5e9};
  EXPECT_EQ(judge(r).state, "PASS");
  t.number["rate_bytes_per_s"] = {25e9, 25e9, 12.5e9, 25e9};
  t.text["state"] = {"up", "up", "down", "up"};
  EXPECT_EQ(judge(r).findings.size(), 1U) << "that it is down";
}

TEST(VerdictInventory, NicsThatCouldDoMoreAreNoted) {
  auto r = healthy(2);
  auto& t = r.inventory["nic"];
  t.entity = rows_of_kind(r, "nic");
  t.text["state"] = {"up", "up"};
  t.number["rate_bytes_per_s"] = {1.25e9, 1.25e9};
  t.number["max_rate_bytes_per_s"] = {12.5e9, 12.5e9};
  const auto v = judge(r);
  EXPECT_EQ(v.state, "PASS");
  ASSERT_EQ(v.findings.size(), 1U);
  EXPECT_EQ(v.findings[0].severity, "INFO");
  EXPECT_THAT(v.findings[0].text, ::testing::ContainsRegex("node0/eth0 .*10 Gbit/s.*100 Gbit/s.* 1 more"));
}

/// Most nodes that lack a GPU do not make the others wrong.
TEST(VerdictInventory, NodesWithoutAGpuDoNotDecideForThoseWithIt) {
  for (const double left : {0.0, 3.0})
    for (const auto& [nodes, lacking] : {std::pair(3, 2), std::pair(8, 5), std::pair(64, 63)}) {
      auto r = healthy(nodes);
      auto& gpus = node_table(r).number[column::gpus];
      gpus.assign(static_cast<std::size_t>(nodes), 4);
      for (int i = 0; i < lacking; ++i) gpus[static_cast<std::size_t>(i)] = left;
      const auto v = judge(r);
      EXPECT_EQ(v.state, "INCONCLUSIVE") << nodes;
      ASSERT_EQ(v.findings.size(), 1U) << nodes;
      EXPECT_EQ(v.findings[0].members.size(), static_cast<std::size_t>(lacking));
      EXPECT_EQ(state_of(r, v, "node0"), "INCONCLUSIVE");
      EXPECT_EQ(state_of(r, v, "node" + std::to_string(nodes - 1)), "PASS");
      EXPECT_THAT(v.findings[0].text, HasSubstr("--expect-devices"));
      r.config["options"] = Json{{"expect-devices", 3}};
      EXPECT_EQ(judge(r).state, "WARN") << nodes;
    }
}

}  // namespace
}  // namespace assay
