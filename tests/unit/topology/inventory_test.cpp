// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "tests/unit/topology_tree.hpp"
#include "topology/discover.hpp"
#include "topology/inventory_tables.hpp"

namespace assay {
namespace {
using ::testing::ElementsAre;

Topology sample() {
  Node node = testing::made_node("node07", 2);
  node.kernel_cmdline = "BOOT_IMAGE=/vmlinuz root=UUID=1234 mitigations=off isolcpus=3 quiet -- idle=poll";
  node.nics = {testing::made_nic("mlx5_0:1", "roce", "0000:3b:00.0", 5e10),
               testing::made_nic("eth2", "ethernet", "0000:3b:00.0", 5e10),
               testing::made_nic("eth3", "ethernet", "0000:3c:00.0", unsupported),
               testing::made_nic("lo", "loopback", "", unsupported)};
  node.nics.edit()[0].netdev = "eth2";
  node.nics.edit()[2].state = "down";
  node.nics.edit()[3].virtual_device = true;
  node.pci_links.push_back({"0000:3b:00.0", "network", "15b3:1021", 16, 32, 8, 16, 0, {}, {}});
  node.pci_links.push_back({"0000:41:00.0", "nvme", "144d:a80a", 16, 16, 4, 4, 0, {}, {}});
  node.software.edit()["glibc"] = "2.36";
  return discover({to_json(node).dump()}, {to_text({"node07", 0, 0, {0, 1}, 1, "1"})}, 0, 0);
}

TEST(Inventory, EveryTableIsRectangularWithUnitsAndRealEntities) {
  const Topology topology = sample();
  const EntityTable entities(topology);
  const auto tables = inventory_tables(topology, entities);
  EXPECT_TRUE(tables.contains("node") && tables.contains("cpu") && tables.contains("numa") &&
              tables.contains("nic") && tables.contains("pci") && tables.contains("device"));
  EXPECT_FALSE(tables.contains("dimm")) << "no firmware table, no table of modules";
  for (const auto& [kind, table] : tables) {
    for (const auto& [name, column] : table.text)
      EXPECT_EQ(column.size(), table.entity.size()) << kind << "/" << name;
    for (const auto& [name, column] : table.number) {
      EXPECT_EQ(column.size(), table.entity.size()) << kind << "/" << name;
      EXPECT_TRUE(table.unit.contains(name)) << kind << "/" << name;
    }
    for (const int entity : table.entity) {
      EXPECT_GE(entity, 0) << kind;
      EXPECT_LT(entity, static_cast<int>(entities.rows().size())) << kind;
    }
  }
}

TEST(Entities, AResumedRunFindsItsLinksAgain) {
  const Topology topology = sample();
  EntityTable first(topology);
  const int nics[] = {first.nic(0, "eth2"), first.nic(0, "eth3")};
  const int link = first.link(nics[0], nics[1]);
  EntityTable second(topology);
  second.adopt(first.rows());
  EXPECT_EQ(second.link(nics[0], nics[1]), link);
  EXPECT_EQ(second.rows().size(), first.rows().size());
  EXPECT_EQ(second.link(nics[1], nics[0]), link + 1);
  auto others = first.rows();
  others[1].id = "another";
  EntityTable third(topology);
  EXPECT_THROW(third.adopt(others), Error);
  EXPECT_THROW(third.adopt({}), Error);
}

TEST(Inventory, NicsByCableAndLinksByTheirNic) {
  const Topology topology = sample();
  const EntityTable entities(topology);
  const auto tables = inventory_tables(topology, entities);
  EXPECT_THAT(tables.at("nic").entity, ElementsAre(entities.nic(0, "mlx5_0:1"), entities.nic(0, "eth3")));
  EXPECT_THAT(tables.at("nic").text.at("state"), ElementsAre("up", "down"));
  EXPECT_THAT(tables.at("pci").entity, ElementsAre(entities.nic(0, "mlx5_0:1"), entities.node(0)));
  EXPECT_THAT(tables.at("pci").number.at("width"), ElementsAre(8, 4));
  EXPECT_THAT(tables.at("pci").number.at("max_width"), ElementsAre(16, 4));
  const auto& node = tables.at("node");
  EXPECT_THAT(node.number.at("nics"), ElementsAre(2));
  EXPECT_THAT(node.number.at("nics_up_info"), ElementsAre(1));
  EXPECT_TRUE(std::isnan(node.number.at("max_clock_hz")[0])) << "unsupported is no number";
  EXPECT_TRUE(std::isnan(node.number.at("dimms")[0])) << "unreadable tables are not zero modules";
  EXPECT_THAT(tables.at("device").number.at("threads"), ElementsAre(2));
}

/// hwloc gives a domain of CXL memory the CPUs of the domains next to it; it took a share of the DIMMs' rate.
TEST(Inventory, ADomainWithoutCpusOfItsOwnHasNone) {
  Node node = testing::made_node("node07", 4);
  node.numa = {{0, {0, 1}, 1}, {1, {2, 3}, 1}, {2, {2, 3}, 1}, {3, {0, 1, 2, 3}, 1}, {4, {}, 1}};
  const Topology topology =
      discover({to_json(node).dump()}, {to_text({"node07", 0, 0, {0, 1}, 1, "1"})}, 0, 0);
  const auto tables = inventory_tables(topology, EntityTable(topology));
  EXPECT_THAT(tables.at("numa").number.at("pus"), ElementsAre(2, 2, 0, 0, 0));
}

/// Each rank that leads a node asks all of them: 5 s of 12500 nodes, when each CPU was looked for in all
/// lists.
TEST(Inventory, LastLevelCachesAreFoundInOnePass) {
  constexpr int cpus = 512, nodes = 100;
  std::vector<Cache> caches;
  std::vector<int> all;
  for (int cpu = 0; cpu < cpus; ++cpu) {
    caches.push_back({2, 1, {cpu}});
    all.push_back(cpu);
  }
  for (int first = 0; first < cpus / 2; first += 16) {  // the other half has none of level 3
    caches.push_back({3, 1000, {}});
    for (int cpu = first; cpu < first + 16; ++cpu) caches.back().cpus.push_back(cpu);
  }
  Node node;
  node.caches = caches;
  EXPECT_EQ(node.llc_bytes_total(), 16256U);
  EXPECT_EQ(node.llc_bytes_of(all), 16256U);
  const auto seconds = [&](const auto& of_node) {
    std::uint64_t sum = 0;
    const double begin = process_cpu_s();
    for (int n = 0; n < nodes; ++n) sum += of_node();
    EXPECT_EQ(sum, 16256U * nodes);
    return process_cpu_s() - begin;
  };
  const double total = seconds([&] { return node.llc_bytes_total(); }),
               search = seconds([&] { return node.llc_bytes_of(all); });
  EXPECT_LT(4 * total, search) << "a fortieth";
}

TEST(Inventory, KernelOptionsLeaveOutWhatNamesTheNode) {
  EXPECT_EQ(performance_options(sample().nodes[0].kernel_cmdline), "isolcpus=3 mitigations=off");
  EXPECT_EQ(performance_options("b=1 nosmt  iommu=pt"), performance_options("iommu=pt nosmt root=/dev/sdb"));
}

TEST(Inventory, EnvironmentRowsNameTheNode) {
  const auto rows = environment_rows(sample());
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].node, "node07");
  EXPECT_EQ(rows[0].key, "glibc");
  EXPECT_EQ(rows[0].value, "2.36");
}

}  // namespace
}  // namespace assay
