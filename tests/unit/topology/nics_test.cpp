// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>
#include <map>

#include "tests/unit/topology_tree.hpp"
#include "topology/inventory_tables.hpp"
#include "topology/probe_parts.hpp"
#include "topology/sysfs.hpp"
#include "topology/topology.hpp"

namespace assay {
namespace {
using testing::Tree;

const Nic& find(const Node& node, const std::string& name) {
  for (const auto& nic : node.nics) {
    if (nic.name == name) return nic;
  }
  throw std::runtime_error("no NIC " + name);
}

TEST(Nics, EightInfinibandRails) {
  Tree tree;
  for (int rail = 0; rail < 8; ++rail) {
    const std::string state = rail == 5 ? "1: DOWN" : "4: ACTIVE";
    testing::add_fabric(tree, "mlx5_" + std::to_string(rail), "3" + std::to_string(rail), "InfiniBand",
                        "400 Gb/sec (4X NDR)", state);
  }
  testing::add_virtual(tree, "lo", "772", "unknown");
  const Node node = probe_node(tree.root());
  ASSERT_EQ(physical_nics(node).size(), 8U);
  const Nic& nic = find(node, "mlx5_3:1");
  EXPECT_EQ(nic.kind, "infiniband");
  EXPECT_EQ(nic.state, "up");
  EXPECT_DOUBLE_EQ(nic.rate_bytes_per_s, 50e9);
  EXPECT_EQ(nic.pci, "0000:33:00.0");
  EXPECT_EQ(nic.numa, 1);
  EXPECT_EQ(nic.firmware, "28.39.1002");
  EXPECT_EQ(nic.driver, "mlx5_core");
  EXPECT_EQ(node.id_of(nic), "0c42:a103:0000:0033:1");
  EXPECT_EQ(nic.id_source, "guid");
  EXPECT_EQ(find(node, "mlx5_5:1").state, "down");
  EXPECT_EQ(find(node, "lo").kind, "loopback");
  EXPECT_TRUE(find(node, "lo").virtual_device);
  EXPECT_EQ(node.pci_links.size(), 8U);
}

TEST(Nics, RocePortAndItsInterfaceAreOneCable) {
  Tree tree;
  testing::add_fabric(tree, "mlx5_0", "3b", "Ethernet", "100 Gb/sec (4X EDR)");
  tree.file("/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0", "eth2\n");
  tree.file("/sys/class/net/eth2/type", "1\n")
      .file("/sys/class/net/eth2/operstate", "up\n")
      .file("/sys/class/net/eth2/speed", "100000\n");
  tree.link("/sys/class/net/eth2/device", "/sys/devices/pci0000:00/0000:00:3b.0/0000:3b:00.0");
  const Node node = probe_node(tree.root());
  EXPECT_EQ(node.nics.size(), 2U);
  EXPECT_EQ(find(node, "mlx5_0:1").kind, "roce");
  EXPECT_EQ(find(node, "mlx5_0:1").netdev, "eth2");
  EXPECT_DOUBLE_EQ(find(node, "eth2").rate_bytes_per_s, 12.5e9);
  ASSERT_EQ(physical_nics(node).size(), 1U);
  EXPECT_EQ(physical_nics(node)[0]->name, "mlx5_0:1");
}

/// Neither the port in software nor the NIC that it sends through was listed.
TEST(Nics, SoftRoceHidesNoNic) {
  Tree tree;
  testing::add_ethernet(tree, "eth0", "18", 25000);
  const std::string port = "/sys/class/infiniband/rxe0/ports/1";
  tree.file(port + "/link_layer", "Ethernet\n").file(port + "/state", "4: ACTIVE\n");
  tree.file(port + "/gid_attrs/ndevs/0", "eth0\n");
  const Node node = probe_node(tree.root());
  EXPECT_EQ(find(node, "rxe0:1").netdev, "eth0");
  EXPECT_TRUE(find(node, "rxe0:1").virtual_device);
  ASSERT_EQ(physical_nics(node).size(), 1U);
  EXPECT_EQ(physical_nics(node)[0]->name, "eth0");
}

TEST(Nics, EthernetOnlyWithVirtualInterfaces) {
  Tree tree;
  testing::add_ethernet(tree, "eno1", "18", 25000);
  testing::add_ethernet(tree, "eno2", "19", -1, "down");
  testing::add_virtual(tree, "docker0", "1", "up");
  testing::add_virtual(tree, "veth12ab", "1", "up");
  tree.file("/sys/class/net/bonding_masters", "\n");
  const Node node = probe_node(tree.root());
  EXPECT_EQ(node.nics.size(), 4U) << "bonding_masters is a file, no interface";
  EXPECT_DOUBLE_EQ(find(node, "eno1").rate_bytes_per_s, 25e9 / 8);
  EXPECT_EQ(find(node, "eno1").driver, "ice");
  EXPECT_EQ(find(node, "eno2").state, "down");
  EXPECT_TRUE(std::isnan(find(node, "eno2").rate_bytes_per_s)) << "-1 is unknown";
  EXPECT_TRUE(find(node, "docker0").virtual_device);
  EXPECT_TRUE(find(node, "veth12ab").virtual_device);
  EXPECT_EQ(physical_nics(node).size(), 2U);
}

TEST(Nics, VirtualFunctionsAreASettingOfTheirPort) {
  Tree tree;
  testing::add_ethernet(tree, "eno1", "18", 25000);
  testing::add_ethernet(tree, "eno1v0", "28", 25000);
  tree.link("/sys/class/net/eno1v0/device/physfn", "/sys/class/net/eno1/device");
  EXPECT_EQ(physical_nics(probe_node(tree.root())).size(), 2U)
      << "a container that is given a function sees no interface of its port";
  tree.link("/sys/class/net/eno1/device/net/eno1", "/sys/class/net/eno1");
  const Node node = probe_node(tree.root());
  ASSERT_EQ(physical_nics(node).size(), 1U);
  EXPECT_EQ(physical_nics(node)[0]->name, "eno1");
}

TEST(Nics, WhatAnInterfaceRidesOnAndWhetherItHasAnAddress) {
  Tree tree;
  testing::add_ethernet(tree, "eth0", "18", 25000);
  for (const char* name : {"bond0", "bond0.7", "br0"}) testing::add_virtual(tree, name, "1", "up");
  tree.link("/sys/class/net/bond0/lower_eth0", "/sys/class/net/eth0")
      .link("/sys/class/net/bond0.7/lower_bond0", "/sys/class/net/bond0")
      .file("/sys/class/net/br0/bridge/bridge_id", "8000\n");
  EXPECT_TRUE(find(probe_node(tree.root()), "eth0").addressed) << "where that is not known";
  tree.file("/addressed", "bond0.7\nbr0\n");
  const Node node = node_from_json(to_json(probe_node(tree.root())));
  EXPECT_FALSE(find(node, "eth0").addressed);
  EXPECT_TRUE(find(node, "eth0").lower.empty());
  EXPECT_FALSE(find(node, "bond0").addressed);
  EXPECT_EQ(find(node, "bond0").lower, std::vector<std::string>{"eth0"});
  EXPECT_TRUE(find(node, "bond0.7").addressed);
  EXPECT_EQ(find(node, "bond0.7").lower, std::vector<std::string>{"bond0"});
  EXPECT_TRUE(find(node, "br0").bridge);
  EXPECT_FALSE(find(node, "bond0").bridge);
}

TEST(Nics, ThisMachinesLoopbackHasAnAddress) {
  const auto names = addressed_interfaces("");
  ASSERT_TRUE(names.has_value());
  for (const Nic& nic : probe_node().nics)
    if (nic.kind == "loopback" && nic.state == "up") {
      EXPECT_TRUE(names->contains(nic.name));
    }
}

TEST(Nics, LoopbackOnly) {
  Tree tree;
  testing::add_virtual(tree, "lo", "772", "unknown");
  const Node node = probe_node(tree.root());
  ASSERT_EQ(node.nics.size(), 1U);
  EXPECT_EQ(node.nics[0].state, "up");
  EXPECT_TRUE(physical_nics(node).empty());
}

TEST(PciLinks, CapabilityIsThatOfBothEnds) {
  Tree tree;
  testing::add_pci(tree, "3b", "0x020000", {"16.0 GT/s PCIe", "32.0 GT/s PCIe", 8, 16},
                   {"16.0 GT/s PCIe", "16.0 GT/s PCIe", 8, 8});
  testing::add_pci(tree, "3c", "0x010802", {"8.0 GT/s PCIe", "16.0 GT/s PCIe", 4, 4},
                   {"8.0 GT/s PCIe", "16.0 GT/s PCIe", 4, 16});
  testing::add_pci(tree, "3d", "0x030200", {"Unknown", "Unknown", 0, 255}, {});
  testing::add_pci(tree, "3e", "0x040300", {}, {});  // sound: of no interest
  const Node node = probe_node(tree.root());
  ASSERT_EQ(node.pci_links.size(), 2U);
  EXPECT_EQ(node.pci_links[0].address, "0000:3b:00.0");
  EXPECT_DOUBLE_EQ(node.pci_links[0].max_width, 8) << "a x16 card in a x8 slot is not degraded";
  EXPECT_DOUBLE_EQ(node.pci_links[0].max_speed_gt_s, 16);
  EXPECT_EQ(node.pci_links[1].device_class, "nvme");
  EXPECT_DOUBLE_EQ(node.pci_links[1].speed_gt_s, 8);
  EXPECT_DOUBLE_EQ(node.pci_links[1].max_speed_gt_s, 16) << "this one is degraded";
}

TEST(PciLinks, ADriveBehindVmdIsBoundByItsSlot) {
  Tree tree;
  const std::string vmd = "/sys/devices/pci0000:00/0000:00:0e.0", port = vmd + "/pci10000:00/10000:00:02.0",
                    drive = port + "/10000:01:00.0";
  const auto link = [&](const std::string& directory, const char* pci_class, const char* most) {
    tree.file(directory + "/class", std::string(pci_class) + "\n")
        .file(directory + "/current_link_speed", "16.0 GT/s PCIe\n")
        .file(directory + "/current_link_width", "4\n")
        .file(directory + "/max_link_speed", std::string(most) + " GT/s PCIe\n")
        .file(directory + "/max_link_width", "4\n");
    tree.link("/sys/bus/pci/devices/" + directory.substr(directory.rfind('/') + 1), directory);
  };
  link(port, "0x060400", "16.0");
  link(drive, "0x010802", "32.0");
  const Node node = probe_node(tree.root());
  ASSERT_EQ(node.pci_links.size(), 1U) << "a root port shows the link below it";
  EXPECT_EQ(node.pci_links[0].address, "10000:01:00.0");
  EXPECT_DOUBLE_EQ(node.pci_links[0].max_speed_gt_s, 16);
}

TEST(PciLinks, AddressesOfFunctions) {
  for (const char* name : {"0000:3b:00.0", "10000:01:00.0", "abcdef01:ff:1f.7"})
    EXPECT_TRUE(sysfs::is_pci_function(name)) << name;
  for (const char* name : {"pci0000:00", "pci10000:00", "0000:3b:00", "000:3b:00.0", "0000:3b", "", "nvme0"})
    EXPECT_FALSE(sysfs::is_pci_function(name)) << name;
}

TEST(Pci, NicsNearAGpu) {
  Tree tree;
  // A switch below a root port carries a GPU and a NIC; another NIC and a GPU hang on root ports of their
  // own.
  const std::string upper = "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0";
  const auto device = [&](const std::string& directory, const std::string& address, const char* pci_class,
                          const char* numa) {
    tree.file(directory + "/" + address + "/class", std::string(pci_class) + "\n")
        .file(directory + "/" + address + "/numa_node", std::string(numa) + "\n");
    tree.file(directory + "/" + address + "/current_link_width", "16\n")
        .link("/sys/bus/pci/devices/" + address, directory + "/" + address);
    return directory + "/" + address;
  };
  device(upper + "/0000:02:00.0", "0000:03:00.0", "0x030200", "0");
  const auto below = device(upper + "/0000:02:01.0", "0000:04:00.0", "0x020700", "0");
  const auto apart = device("/sys/devices/pci0000:00/0000:00:05.0", "0000:06:00.0", "0x020700", "0");
  device("/sys/devices/pci0000:40/0000:40:01.0", "0000:41:00.0", "0x120000", "0");
  device("/sys/devices/pci0000:80/0000:80:01.0", "0000:81:00.0", "0x030200", "1");
  for (const auto& [name, function] : {std::pair("mlx5_0", below), std::pair("mlx5_1", apart)}) {
    const std::string base = std::string("/sys/class/infiniband/") + name;
    tree.file(base + "/ports/1/link_layer", "InfiniBand\n")
        .file(base + "/ports/1/state", "4: ACTIVE\n")
        .file(base + "/ports/1/rate", "200 Gb/sec (4X HDR)\n");
    tree.link(base + "/device", function);
  }
  const Node node = probe_node(tree.root());
  std::map<std::string, const PciLink*> of;
  for (const auto& link : node.pci_links) of[link.address] = &link;
  ASSERT_EQ(of.count("0000:03:00.0") + of.count("0000:41:00.0") + of.count("0000:81:00.0"), 3U);
  EXPECT_EQ(of["0000:03:00.0"]->near_nics, std::vector<std::string>{"mlx5_0:1"}) << "below the same switch";
  EXPECT_EQ(of["0000:03:00.0"]->near_by, "pci");
  EXPECT_EQ(of["0000:41:00.0"]->near_nics, (std::vector<std::string>{"mlx5_0:1", "mlx5_1:1"}));
  EXPECT_EQ(of["0000:41:00.0"]->near_by, "numa");
  EXPECT_TRUE(of["0000:81:00.0"]->near_nics.empty());
  EXPECT_EQ(of["0000:81:00.0"]->near_by, "");
  EXPECT_EQ(of["0000:81:00.0"]->numa, 1);
  EXPECT_TRUE(of["0000:04:00.0"]->near_nics.empty()) << "a NIC";
  EXPECT_EQ(node_from_json(to_json(node)).pci_links.front().near_nics, node.pci_links.front().near_nics);
}

TEST(Pci, IommuAndAcs) {
  Tree tree;
  tree.file("/sys/class/iommu/dmar0/x", "").file("/sys/kernel/iommu_groups/0/type", "DMA-FQ\n");
  tree.file("/sys/kernel/iommu_groups/1/type", "identity\n")
      .file("/sys/kernel/iommu_groups/2/type", "DMA-FQ\n");
  const std::string function = testing::add_pci(tree, "3b", "0x020000", {}, {});
  std::string config(4096, '\0');
  config[0x100] = 0x01, config[0x102] = 0x01, config[0x103] = 0x15;  // AER, next at 0x150
  config[0x150] = 0x0d, config[0x152] = 0x01, config[0x156] = 0x0c;  // ACS with both redirections on
  const std::string bridge = "/sys/devices/pci0000:00/0000:00:3b.0";
  tree.file(bridge + "/config", config);
  EXPECT_EQ(probe_node(tree.root()).acs, "on");
  EXPECT_EQ(probe_node(tree.root()).iommu, "on DMA-FQ,identity");
  config[0x156] = 0x01;
  tree.file(bridge + "/config", config);
  EXPECT_EQ(probe_node(tree.root()).acs, "off");
  tree.file(bridge + "/config", config.substr(0, 64));  // what others than root can read
  EXPECT_EQ(probe_node(tree.root()).acs, "");
}

}  // namespace
}  // namespace assay
