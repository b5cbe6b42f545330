// SPDX-License-Identifier: Apache-2.0
// Bounds of GPUs against the figures of their data sheets.
#include "topology/gpu_bounds.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace assay {
namespace {

Gpu gpu(const char* compute, double cores, double sm_mhz, double memory_mhz, double bits) {
  Gpu g;
  g.compute = compute, g.shader_cores = cores, g.sm_clock_max_hz = 1e6 * sm_mhz;
  g.memory_clock_max_hz = 1e6 * memory_mhz, g.memory_bus_bits = bits;
  return g;
}

TEST(GpuBounds, MemoryIsClockTimesTwoTimesWidth) {
  EXPECT_NEAR(memory_bound(gpu("9.0", 16896, 1830, 2619, 5120)).rate, 3.35e12, 0.01e12);  // H100 SXM
  EXPECT_NEAR(memory_bound(gpu("8.0", 6912, 1410, 1593, 5120)).rate, 2.039e12, 1e9);      // A100 80 GB
  EXPECT_NEAR(memory_bound(gpu("8.6", 9216, 1695, 6251, 384)).rate, 600e9, 1e9);          // A10
}

TEST(GpuBounds, ProductsAreMultiprocessorsTimesClockTimesOperations) {
  const Gpu h100 = gpu("9.0", 16896, 1830, 2619, 5120), a100 = gpu("8.0", 6912, 1410, 1593, 5120);
  EXPECT_NEAR(math_bound(h100, "bf16").rate, 989e12, 5e12);
  EXPECT_NEAR(math_bound(h100, "fp8").rate, 1979e12, 5e12);
  EXPECT_NEAR(math_bound(a100, "bf16").rate, 312e12, 1e12);
  EXPECT_NEAR(math_bound(a100, "tf32").rate, 156e12, 1e12);
  EXPECT_NEAR(math_bound(a100, "fp64").rate, 19.5e12, 0.1e12);
  EXPECT_NEAR(math_bound(gpu("8.9", 18176, 2520, 9001, 384), "fp8").rate, 733e12, 5e12);  // L40S
  EXPECT_FALSE(math_bound(a100, "fp8").known());
  EXPECT_NEAR(math_bound(gpu("12.0", 24064, 2617, 14001, 512), "bf16").rate, 503.8e12, 1e12);  // RTX PRO 6000
  for (const char* unknown : {"10.3", "12.1"})
    EXPECT_EQ(std::string(math_bound(gpu(unknown, 20480, 1900, 4000, 8192), "bf16").by).rfind("none: ", 0),
              0u);
  EXPECT_FALSE(math_bound(gpu("99.0", 1000, 1000, 1000, 1000), "bf16").known());
}

TEST(GpuBounds, HostLinkIsGenerationTimesLanes) {
  Gpu g;
  g.pcie_generation_max = 5, g.pcie_width_max = 16;
  EXPECT_NEAR(host_link_bound(g).rate, 63e9, 0.1e9);
  g.pcie_generation_max = 3;
  EXPECT_NEAR(host_link_bound(g).rate, 15.75e9, 0.01e9);
  g.pcie_generation_max = 17;
  EXPECT_FALSE(host_link_bound(g).known());
}

TEST(GpuBounds, WhatTheDriverDoesNotTellIsUnknown) {
  EXPECT_FALSE(memory_bound(Gpu()).known());
  EXPECT_FALSE(host_link_bound(Gpu()).known());
  EXPECT_FALSE(math_bound(gpu("9.0", NAN, 1830, 2619, 5120), "bf16").known());
}

/// Nodes of `local` ranks, each with a GPU of 18 links to switches and, behind the same bridge, a NIC of its
/// own.
Topology cluster(int nodes, int local) {
  Topology topology;
  topology.device_kind = "cuda";
  for (int n = 0; n < nodes; ++n) {
    Node node;
    for (int g = 0; g < local; ++g) {
      Gpu one;
      one.pci = "0000:1" + std::to_string(g) + ":00.0";
      one.pcie_generation_max = 5, one.pcie_width_max = 16;
      one.nvlinks_up = 18, one.nvlink_rate_bytes_per_s = 26.5625e9;
      one.nvlink_ends.assign(18, "switch");
      node.gpus.push_back(one);
      Nic nic;
      nic.name = "mlx5_" + std::to_string(g) + ":1", nic.kind = "infiniband", nic.state = "up";
      nic.rate_bytes_per_s = 50e9;
      node.nics.edit().push_back(nic);
      PciLink link;
      link.address = one.pci, link.near_nics = {nic.name}, link.near_by = "pci";
      node.pci_links.edit().push_back(link);
      RankPlace place;
      place.rank = topology.size(), place.node = n, place.local_rank = g, place.gpu = g;
      topology.ranks.push_back(place);
    }
    topology.nodes.push_back(node);
  }
  topology.index_ranks();
  return topology;
}

TEST(LinkBounds, PairsOfANodeHaveTheLinksThatAreUpBetweenThem) {
  auto topology = cluster(1, 3);
  auto& gpus = topology.nodes[0].gpus.edit();
  EXPECT_DOUBLE_EQ(pair_bound(topology, LinkUse::copy, 0, 1).rate, 18 * 26.5625e9);
  EXPECT_EQ(pair_bound(topology, LinkUse::copy, 0, 1).floor, bounded::nvlink_copy.floor);
  gpus[1].nvlinks_up = 17, gpus[1].nvlink_ends.resize(17);
  EXPECT_DOUBLE_EQ(pair_bound(topology, LinkUse::message, 0, 1).rate, 17 * 26.5625e9);
  EXPECT_DOUBLE_EQ(pair_bound(topology, LinkUse::message, 1, 0).rate, 17 * 26.5625e9);
  // Without switches: four links to one neighbour, none to the other.
  gpus[0].nvlink_ends.assign(4, gpus[1].pci), gpus[1].nvlink_ends.assign(4, gpus[0].pci);
  gpus[2].nvlink_ends.assign(2, gpus[1].pci);
  EXPECT_DOUBLE_EQ(pair_bound(topology, LinkUse::copy, 0, 1).rate, 4 * 26.5625e9);
  EXPECT_NEAR(pair_bound(topology, LinkUse::copy, 0, 2).rate, 63e9, 0.1e9);
  EXPECT_EQ(pair_bound(topology, LinkUse::copy, 0, 2).floor, 0);
  // A driver that does not say where links lead, and a GPU that two ranks share.
  gpus[0].nvlink_ends.clear();
  EXPECT_FALSE(pair_bound(topology, LinkUse::copy, 0, 1).known());
  topology.ranks[2].shares_gpu = true;
  EXPECT_FALSE(pair_bound(topology, LinkUse::copy, 1, 2).known());
}

TEST(LinkBounds, AGpuWithAllOthersHasItsLinksAndNoMoreThanTheirs) {
  auto topology = cluster(1, 3);
  auto& gpus = topology.nodes[0].gpus.edit();
  EXPECT_DOUBLE_EQ(star_bound(topology, 0).rate, 18 * 26.5625e9);
  EXPECT_EQ(star_bound(topology, 0).floor, bounded::nvlink_copy.floor);
  gpus[0].nvlinks_up = 17, gpus[0].nvlink_ends.resize(17);
  EXPECT_DOUBLE_EQ(star_bound(topology, 0).rate, 17 * 26.5625e9);
  EXPECT_DOUBLE_EQ(star_bound(topology, 1).rate, 18 * 26.5625e9);
  // Without switches: four links to each neighbour.
  for (auto& gpu : gpus) gpu.nvlink_ends.clear();
  for (std::size_t a = 0; a < 3; ++a)
    for (std::size_t b = 0; b < 3; ++b)
      if (a != b) gpus[a].nvlink_ends.insert(gpus[a].nvlink_ends.end(), 4, gpus[b].pci);
  EXPECT_DOUBLE_EQ(star_bound(topology, 1).rate, 8 * 26.5625e9);
  // None to one of them; a driver that does not say where they lead; a GPU that two ranks share.
  std::erase(gpus[2].nvlink_ends, gpus[0].pci);
  EXPECT_NEAR(star_bound(topology, 0).rate, 63e9, 0.1e9);
  EXPECT_EQ(star_bound(topology, 0).floor, 0);
  gpus[1].nvlink_ends.clear();
  EXPECT_FALSE(star_bound(topology, 1).known());
  topology.ranks[2].shares_gpu = true;
  EXPECT_FALSE(star_bound(topology, 0).known());
}

TEST(LinkBounds, NodesHaveTheSlowerOfPcieAndTheNicNextToTheGpu) {
  auto topology = cluster(2, 2);
  const auto bound = [&] { return pair_bound(topology, LinkUse::message, 0, 2); };
  EXPECT_DOUBLE_EQ(bound().rate, 50e9);
  EXPECT_EQ(bound().floor, bounded::network_message.floor);
  // IPoIB on a port is that port.
  for (Node& node : topology.nodes) {
    Nic ib0 = node.nics[0];
    ib0.name = node.nics.edit()[0].netdev = "ib0";
    node.nics.edit().push_back(ib0);
    node.pci_links.edit()[0].near_nics.push_back("ib0");
  }
  EXPECT_DOUBLE_EQ(bound().rate, 50e9);
  EXPECT_EQ(bound().floor, bounded::network_message.floor);
  topology.nodes[1].gpus.edit()[0].pcie_generation_max = 4;
  EXPECT_NEAR(bound().rate, 31.5e9, 0.1e9);
  // Both GPUs next to both NICs: each has half of them, and which of them carries a message is not known.
  for (auto& link : topology.nodes[1].pci_links.edit()) link.near_nics = {"mlx5_0:1", "mlx5_1:1"};
  topology.nodes[1].gpus.edit()[0].pcie_generation_max = 5;
  EXPECT_DOUBLE_EQ(bound().rate, 50e9);
  EXPECT_EQ(bound().floor, 0);
  for (auto& link : topology.nodes[1].pci_links.edit()) link.near_nics = {"mlx5_0:1"};
  EXPECT_DOUBLE_EQ(bound().rate, 25e9);
  for (auto& nic : topology.nodes[1].nics.edit()) nic.state = "down";
  EXPECT_FALSE(bound().known());
}

/// SR-IOV lists each virtual function as a port with the rate of the cable.
TEST(LinkBounds, VirtualFunctionsAreNoNicsMore) {
  auto topology = cluster(2, 1);
  for (Node& node : topology.nodes) {
    Nic function = node.nics[0];
    function.name = "mlx5_2:1", function.virtual_device = true;
    node.nics.edit().push_back(function);
    node.pci_links.edit()[0].near_nics.push_back(function.name);
    node.pci_links.edit()[0].near_by = "numa";
  }
  const GpuBound bound = pair_bound(topology, LinkUse::message, 0, 1);
  EXPECT_DOUBLE_EQ(bound.rate, 50e9);
  EXPECT_EQ(bound.floor, bounded::network_message.floor) << "the only port";
}

TEST(LinkBounds, ASoftwarePortHidesNoNic) {
  auto topology = cluster(2, 1);
  for (Node& node : topology.nodes) {
    Nic port = node.nics[0];
    port.name = "rxe0:1", port.kind = "roce", port.netdev = "eth0", port.virtual_device = true;
    node.nics.edit()[0].name = "eth0", node.nics.edit()[0].kind = "ethernet";
    node.nics.edit().push_back(port);
    node.pci_links.edit()[0].near_nics = {"eth0"};
  }
  EXPECT_DOUBLE_EQ(pair_bound(topology, LinkUse::message, 0, 1).rate, 50e9);
}

TEST(LinkBounds, CollectivesHaveTheLinksOfAGpuOrTheNicsOfANode) {
  auto topology = cluster(2, 4);
  EXPECT_DOUBLE_EQ(collective_bound(topology, {0, 1, 2, 3}).rate, 18 * 26.5625e9);
  const GpuBound world = collective_bound(topology, {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_DOUBLE_EQ(world.rate, 200e9 * (7.0 / 8) / (1.0 / 2));
  EXPECT_EQ(world.floor, bounded::network_collective.floor);
  EXPECT_DOUBLE_EQ(collective_bound(topology, {0, 4}).rate, 50e9);
  for (auto& link : topology.nodes[1].pci_links.edit()) link.near_by = "numa";
  EXPECT_EQ(collective_bound(topology, {0, 4}).floor, 0);
  topology.nodes[0].gpus.edit()[1].nvlink_ends.clear();
  EXPECT_FALSE(collective_bound(topology, {0, 1, 2, 3}).known());
  for (auto& gpu : topology.nodes[0].gpus.edit()) gpu.nvlinks_up = 0;
  EXPECT_NEAR(collective_bound(topology, {0, 1, 2, 3}).rate, 63e9, 0.1e9);
  EXPECT_EQ(collective_bound(topology, {0, 1, 2, 3}).floor, 0);
  EXPECT_FALSE(collective_bound(topology, {0}).known());
}

TEST(LinkBounds, ACaseIsHeldAgainstOneBound) {
  auto topology = cluster(2, 2);
  EXPECT_STREQ(link_bound_of_case(topology, LinkUse::copy, false).by, "NVLinks up x rate");
  EXPECT_STREQ(link_bound_of_case(topology, LinkUse::copy, true).by, "the slower of PCIe and NICs");
  for (auto& node : topology.nodes)
    for (auto& gpu : node.gpus.edit()) gpu.nvlinks_up = unsupported;
  EXPECT_EQ(link_bound_of_case(topology, LinkUse::collective, false).floor, 0);
}

}  // namespace
}  // namespace assay
