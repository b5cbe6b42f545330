// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "base/error.hpp"
#include "base/random.hpp"
#include "tests/unit/expect_error.hpp"
#include "topology/entities.hpp"
#include "topology/fabric.hpp"
#include "topology/inventory_tables.hpp"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string csv =
    "node,nic,switch,port,rack,rail\n"
    "# a comment\n"
    "n01,eth0,leaf1,3,r1,0\r\n"
    "n01,eth1,leaf2,3,r1,1\n"
    "n02.example.org,eth0,leaf1,4,r2,0\n";
const std::string slurm =
    "# tree\n"
    "SwitchName=leaf1 Nodes=n[01-02]  LinkSpeed=100\n"
    "SwitchName=leaf2 \\\n  Nodes=n03\n"
    "SwitchName=spine Switches=leaf[1-2]\n";
const std::string ib =
    "#\n# Topology file: generated on Mon Jan  5 10:00:00 2026\n#\n"
    "vendid=0x2c9\nswitchguid=0x2c9020040b4a8(2c9020040b4a8)\n"
    "Switch\t36 \"S-0002c9020040b4a8\"\t\t# \"MF0;leaf01:MSB7700/U1\" enhanced port 0 lid 1 lmc 0\n"
    "[17]\t\"H-e41d2d0300a12340\"[1](e41d2d0300a12341) \t\t# \"n01 mlx5_0\" lid 4 4xEDR\n"
    "\nvendid=0x2c9\ncaguid=0xe41d2d0300a12340\n"
    "Ca\t1 \"H-e41d2d0300a12340\"\t\t# \"n01 mlx5_0\"\n"
    "[1](e41d2d0300a12341) \t\"S-0002c9020040b4a8\"[17]\t\t# lid 4 lmc 0 \"MF0;leaf01:MSB7700/U1\" lid 1 "
    "4xEDR\n";

Topology job(int nodes, int nics) {
  Topology t;
  for (int n = 0; n < nodes; ++n) {
    Node node;
    node.hostname = "n0" + std::to_string(n + 1);
    node.id = "id" + std::to_string(n);
    node.id_source = "dmi";
    for (int k = 0; k < nics; ++k) {
      Nic nic;
      nic.name = "eth" + std::to_string(k);
      nic.kind = "ethernet";
      nic.virtual_device = true;
      node.nics.push_back(nic);
    }
    t.nodes.push_back(node);
    RankPlace place;
    place.rank = place.node = n;
    place.cpus = {0};
    t.ranks.push_back(place);
  }
  return t;
}

TEST(Fabric, CsvPlacesNics) {
  const Fabric f = parse_fabric(csv, "t.csv");
  EXPECT_EQ(f.format, "csv");
  ASSERT_EQ(f.ports.size(), 3U);
  auto t = job(3, 2);
  const auto coverage = apply_fabric(f, t);
  EXPECT_EQ(coverage.nodes, 2U);
  EXPECT_EQ(coverage.nics, 3U);
  EXPECT_THAT(coverage.unknown_nodes, ElementsAre("n03"));
  EXPECT_EQ(t.nodes[0].nics[1].leaf, "leaf2");
  EXPECT_EQ(t.nodes[0].nics[1].leaf_port, "3");
  EXPECT_EQ(t.nodes[0].nics[1].rack, "r1");
  EXPECT_EQ(t.nodes[0].nics[1].rail, "1");
  EXPECT_EQ(t.nodes[1].nics[0].leaf, "leaf1") << "with and without the domain";
  EXPECT_THAT(leaf_of_nodes(t), ElementsAre(-1, 0, -1)) << "NICs on two switches are on none";
  const auto text = describe_fabric(f, coverage, t);
  EXPECT_THAT(text, HasSubstr("topology (csv): 2 of 3 nodes, 3 NICs, 2 switches, 2 racks, 2 rails"));
  EXPECT_THAT(text, HasSubstr("nodes that the file does not have: n03"));
}

TEST(Fabric, ColumnsMayBeInAnyOrderAndANicMayBeLeftOut) {
  const Fabric f = parse_fabric("switch,node,nic\nL1,n01,\nL2,n02,*\n", "t.csv");
  auto t = job(2, 2);
  EXPECT_EQ(apply_fabric(f, t).nics, 4U);
  EXPECT_THAT(leaf_of_nodes(t), ElementsAre(0, 1));
}

TEST(Fabric, SlurmTree) {
  const Fabric f = parse_fabric(slurm, "topology.conf");
  EXPECT_EQ(f.format, "slurm");
  ASSERT_EQ(f.ports.size(), 3U);
  EXPECT_THAT(f.uplinks, ElementsAre(std::pair<std::string, std::string>("leaf1", "spine"),
                                     std::pair<std::string, std::string>("leaf2", "spine")));
  auto t = job(3, 1);
  apply_fabric(f, t);
  EXPECT_THAT(leaf_of_nodes(t), ElementsAre(0, 0, 1));
}

TEST(Fabric, ARowWithoutANicIsAboutThoseWithAWire) {
  const Fabric f = parse_fabric(slurm, "topology.conf");
  auto t = job(3, 1);
  for (auto& node : t.nodes) node.nics.edit()[0].virtual_device = false;
  const auto add_bridge = [&] {
    for (auto& node : t.nodes) {
      Nic bridge;
      bridge.name = "docker0", bridge.kind = "ethernet", bridge.virtual_device = true;
      node.nics.edit().push_back(bridge);
      node.nic_ids.emplace_back();
    }
  };
  add_bridge();
  EXPECT_EQ(apply_fabric(f, t).nics, 3U);
  for (const auto& node : t.nodes) EXPECT_EQ(node.nics[1].leaf, "") << node.hostname;
  t = job(3, 0);
  add_bridge();
  EXPECT_EQ(apply_fabric(f, t).nics, 3U) << "virtual hosts have no other";
}

TEST(Fabric, IbnetdiscoverByNameAndByGuid) {
  const Fabric f = parse_fabric(ib, "net.txt");
  EXPECT_EQ(f.format, "ibnetdiscover");
  ASSERT_EQ(f.ports.size(), 1U);
  EXPECT_EQ(f.ports[0].nic, "mlx5_0:1");
  EXPECT_EQ(f.ports[0].leaf, "leaf01");
  EXPECT_EQ(f.ports[0].port, "17");
  auto t = job(1, 1);
  t.nodes[0].nics.edit()[0].name = "renamed:1";
  t.nodes[0].nic_ids = {"e41d:2d03:00a1:2340:1"};
  EXPECT_EQ(apply_fabric(f, t).nics, 1U);
  EXPECT_EQ(t.nodes[0].nics[0].leaf, "leaf01");
}

TEST(Fabric, AGuidDecidesBetweenAdaptersWithOtherNames) {
  const Fabric f = parse_fabric(ib, "net.txt");
  auto t = job(1, 3);
  for (auto& nic : t.nodes[0].nics.edit()) nic.kind = "infiniband";
  t.nodes[0].nics.edit()[0].name = "mlx5_0:1";  // which the file calls another adapter
  t.nodes[0].nics.edit()[1].name = "mlx5_1:1";
  for (const std::size_t nic : {0, 1}) t.nodes[0].nics.edit()[nic].id_source = "guid";
  t.nodes[0].nic_ids = {"e41d:2d03:00a1:9999:1", "e41d:2d03:00a1:2340:1", ""};
  EXPECT_EQ(apply_fabric(f, t).nics, 1U);
  EXPECT_EQ(t.nodes[0].nics[0].leaf, "");
  EXPECT_EQ(t.nodes[0].nics[1].leaf, "leaf01");
  t.nodes[0].nics.edit()[0].id_source = "mac";  // no GUID is known of it
  EXPECT_EQ(apply_fabric(f, t).nics, 1U);
  EXPECT_EQ(t.nodes[0].nics[0].leaf, "leaf01") << "by name";
}

TEST(Fabric, WrongLinesAreNamed) {
  const auto wrong = [](const std::string& text, const std::string& message) {
    EXPECT_THAT(usage_message([&] { parse_fabric(text, "F"); }), HasSubstr(message)) << text;
  };
  wrong("", "F: empty");
  wrong("node,nic\nn,e\n", "F:1: no column 'switch'");
  wrong("node,nic,switch,speed\n", "F:1: unknown column 'speed'");
  wrong("node,nic,switch,nic\n", "F:1: column 'nic' twice");
  wrong("node,nic,switch\n", "F: a header and no NIC");
  wrong("node,nic,switch\n\nn1,e,\n", "F:3: no switch");
  wrong("node,nic,switch\nn1,e,L1\nn1,e,L2\n", "F:3: duplicate n1/e");
  wrong("node,nic,switch\nn1,e,L1,5\n", "F:2: more cells");
  wrong("node,nic,switch\nn\x01,e,L1\n", "F:2: node holds");
  wrong("node,nic,switch\n" + std::string(200, 'n') + ",e,L1\n", "F:2: node is longer than 128");
  wrong("SwitchName=a Nodes=n[1-\n", "F:1: ");
  wrong("SwitchName=a\n", "F:1: neither Nodes= nor Switches=");
  wrong("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n1\n", "F:2: n1 is connected to switch a already");
  wrong("SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2\n", "F:2: duplicate switch a");
  wrong("SwitchName=a Nodes=n1 Color=red\n", "F:1: unknown key 'color'");
  wrong("BlockName=a Nodes=n1\n", "F:1: block topologies");
  wrong("SwitchName=a Nodes=n[1-999999]\nSwitchName=b Nodes=m[1-999999]\n", "F:2: more than");
  wrong("Ca\t1 \"H-12\"\t# \"n01 mlx5_0\"\n[1](12) \"S-1\"\n", "F:2: \"PEER\"[PORT] is expected");
  wrong("Ca\t1 \"H-xyz\"\t# \"n01 mlx5_0\"\n[1](12) \"S-1\"[1]\n", "F:2: the adapter's id is no GUID");
  wrong("Ca\t1 \"H-12\"\t# \"\"\n", "F:1: the adapter has no description");
}

TEST(Fabric, AnyTextIsReadOrRefusedWithOneLine) {
  const RandomStream random(7, "fabric");
  std::uint64_t draw = 0;
  int read = 0;
  for (const std::string& sample : {csv, slurm, ib})
    for (int i = 0; i < 3000; ++i) {
      std::string text = sample;
      for (std::uint64_t edits = 1 + random.below(draw++, 4); edits > 0; --edits) {
        const auto at = random.below(draw++, text.size());
        switch (random.below(draw++, 3)) {
          case 0: text[at] = static_cast<char>(random.below(draw++, 256)); break;
          case 1: text.erase(at, 1 + random.below(draw++, 20)); break;
          default: {
            const auto from = random.below(draw++, text.size());
            text.insert(at, text.substr(from, random.below(draw++, 30)));
          }
        }
        if (text.empty()) break;
      }
      try {
        auto t = job(3, 2);
        apply_fabric(parse_fabric(text, "F"), t);
        ++read;
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::usage);
        EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos) << e.what();
      }
    }
  EXPECT_GT(read, 1000);
}

TEST(Fabric, BecomesEntitiesAndColumns) {
  auto t = job(2, 2);
  EXPECT_EQ(EntityTable(t).find("switch", "switch:leaf1"), -1);
  EXPECT_FALSE(inventory_tables(t, EntityTable(t)).contains("nic")) << "virtual NICs are not listed";
  const auto without = EntityTable(t).rows().size();
  apply_fabric(parse_fabric(csv, "t.csv"), t);
  const EntityTable entities(t);
  EXPECT_EQ(entities.size(), without + 4) << "two switches and two racks, behind all others";
  EXPECT_GE(entities.find("switch", "switch:leaf2"), static_cast<int>(without));
  EXPECT_EQ(entities.row(entities.find("switch", "switch:leaf2")).parent, entities.find("rack", "rack:r1"));
  const auto table = inventory_tables(t, entities).at("nic");
  EXPECT_EQ(table.entity.size(), 3U);
  EXPECT_THAT(table.text.at("switch"), ElementsAre("leaf1", "leaf2", "leaf1"));
  EXPECT_THAT(table.text.at("rail"), ElementsAre("0", "1", "0"));
}

}  // namespace
}  // namespace assay
