// SPDX-License-Identifier: Apache-2.0
// What the inventory writes and what the verdict looks for are the same columns: facts of nodes on one end,
// findings on the other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "results/inventory_names.hpp"
#include "topology/entities.hpp"
#include "topology/inventory_tables.hpp"
#include "verdict/verdict.hpp"

namespace assay {
namespace {

using testing::HasSubstr;

/// Four servers of one kind, with a NIC, a GPU and an NVMe drive each.
Topology servers() {
  Topology topology;
  for (int n = 0; n < 4; ++n) {
    Node node;
    node.hostname = "node" + std::to_string(n);
    node.id = node.hostname;
    node.cpu_model = "cpu";
    node.hypervisor = "none";
    node.sockets = 1;
    node.cores = 2;
    node.pus = 2;
    node.core_pus = {{0}, {1}};
    node.socket_pus = {{0, 1}};
    node.numa.push_back({});
    node.numa.edit().back().cpus = {0, 1};
    node.memory_bytes = std::uint64_t{64} << 30;
    node.memory_bandwidth_bytes_per_s = 200e9;
    Nic nic;
    nic.name = "mlx5_0";
    node.nic_ids = {"guid" + std::to_string(n)};
    nic.pci = "0000:3b:00.0";
    nic.state = "up";
    nic.kind = "infiniband";
    nic.rate_bytes_per_s = 25e9;
    node.nics.push_back(nic);
    node.pci_links = {{"0000:3b:00.0", "network", "nic", 32, 32, 16, 16, 0, {}, {}},
                      {"0000:4b:00.0", "gpu", "gpu", 2.5, 32, 16, 16, 0, {}, {}},
                      {"0000:5b:00.0", "nvme", "drive", 16, 16, 4, 4, 0, {}, {}}};
    topology.nodes.push_back(node);
    RankPlace place;
    place.rank = place.node = n;
    place.cpus = {0, 1};
    place.threads = 2;
    topology.ranks.push_back(place);
  }
  return topology;
}

results::Results results_of(const Topology& topology) {
  const EntityTable entities(topology);
  results::Results r;
  r.info.state = "complete";
  r.info.level = "quick";
  r.entities = entities.rows();
  r.inventory = inventory_tables(topology, entities);
  return r;
}

/// A case of one device per node whose samples hardly differ.
void measure(results::Results& r, const std::string& suite, const std::string& name,
             const std::string& metric, double rate) {
  results::CaseData c;
  c.suite = suite;
  c.name = name;
  c.stage = "node-local";
  c.case_key = "k";
  c.kind = "device";
  for (std::size_t i = 0; i < r.entities.size(); ++i)
    if (r.entities[i].kind == "device") c.entity.push_back(static_cast<std::int32_t>(i));
  c.count.assign(c.entity.size(), 9);
  for (std::int32_t s = 0; s < 9; ++s) {
    c.sample.push_back(s);
    c.block.push_back(s / 3);
  }
  results::Metric m{metric, "B/s", results::Better::higher, true, results::Role::metric, true, {}};
  for (std::size_t e = 0; e < c.entity.size(); ++e)
    for (int s = 0; s < 9; ++s) {
      m.values.push_back(rate * (1 + 1e-4 * s));
      c.t.push_back(s);
    }
  c.metrics.push_back(m);
  r.cases.push_back(c);
}

std::vector<std::string> fails(const results::Results& r) {
  std::vector<std::string> texts;
  for (const auto& f : verdict::judge(r, {}).findings)
    if (f.severity == "FAIL") texts.push_back(f.text);
  return texts;
}

TEST(InventoryJudged, HealthyServersHaveNoFault) { EXPECT_TRUE(fails(results_of(servers())).empty()); }

TEST(InventoryJudged, ALinkBelowItsCapability) {
  auto topology = servers();
  topology.nodes[1].pci_links.edit()[0].width = 8;
  topology.nodes[2].pci_links.edit()[2].speed_gt_s = 8;
  const auto texts = fails(results_of(topology));
  ASSERT_EQ(texts.size(), 2U);
  EXPECT_THAT(texts[0] + texts[1], HasSubstr("0000:3b:00.0 is x8 of x16"));
  EXPECT_THAT(texts[0] + texts[1], HasSubstr("0000:5b:00.0 runs at 8 of 16 GT/s"));
}

TEST(InventoryJudged, MissingMemory) {
  auto topology = servers();
  topology.nodes[3].memory_bytes -= std::uint64_t{4} << 30;
  const auto texts = fails(results_of(topology));
  ASSERT_EQ(texts.size(), 1U);
  EXPECT_THAT(texts[0],
              testing::ContainsRegex("node3: memory_bytes is [0-9]+ GiB, 3 other nodes have [0-9]+ GiB"));
}

TEST(InventoryJudged, MemoryFarBelowItsChannels) {
  auto r = results_of(servers());
  measure(r, "memory", "triad-together", "bandwidth", 150e9);
  EXPECT_TRUE(fails(r).empty());
  r = results_of(servers());
  measure(r, "memory", "triad-together", "bandwidth", 40e9);
  const auto texts = fails(r);
  ASSERT_EQ(texts.size(), 1U) << "all four are slow: one finding of the cluster";
  EXPECT_THAT(texts[0], HasSubstr("physical floor"));
}

}  // namespace
}  // namespace assay
