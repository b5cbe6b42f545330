// SPDX-License-Identifier: Apache-2.0
// Which network interfaces p2p measures by themselves.
#include <gtest/gtest.h>

#include "comm_planner.hpp"
#include "suites/p2p/rails.hpp"

namespace assay {
namespace {

using comm_plan::topology_of;

std::vector<std::string> rail_names(const std::vector<Nic>& nics) {
  Topology topology = topology_of(2, 2, 2);
  for (auto& node : topology.nodes)
    for (const Nic& nic : nics) node.nics.push_back(nic);
  std::vector<std::string> names;
  for (const auto& rail : p2p::rails(topology)) names.push_back(rail.nic);
  return names;
}

TEST(Rails, ABondOrVlanIsMeasuredInPlaceOfItsPortsWithoutAnAddress) {
  const auto nic = [](const char* name, bool hardware, bool addressed, std::vector<std::string> lower = {}) {
    Nic made;
    made.name = name, made.kind = "ethernet", made.state = "up";
    made.virtual_device = !hardware, made.addressed = addressed, made.lower = std::move(lower);
    return made;
  };
  using Names = std::vector<std::string>;
  const Nic eth0 = nic("eth0", true, false), eth1 = nic("eth1", true, false),
            tunnel = nic("tunnel0", false, true);
  EXPECT_EQ(rail_names({nic("bond0", false, true, {"eth0", "eth1"}), eth0, eth1, tunnel}), Names{"bond0"});
  EXPECT_EQ(rail_names({nic("bond0", false, false, {"eth0", "eth1"}), nic("bond0.7", false, true, {"bond0"}),
                        nic("vxlan7", false, true, {"bond0.7"}), eth0, eth1}),
            Names{"bond0.7"});
  EXPECT_EQ(rail_names({eth0, nic("eth0.7", false, true, {"eth0"}), nic("eth2", true, true)}),
            (Names{"eth0.7", "eth2"}));
  EXPECT_EQ(rail_names({nic("eth2", true, true), nic("eth2.7", false, true, {"eth2"})}), Names{"eth2"});
  Nic bridge = nic("br0", false, true, {"eth0"});
  bridge.bridge = true;
  EXPECT_EQ(rail_names({bridge, eth0, tunnel}), Names{}) << "a tunnel takes no NIC's place";
  Nic lag = nic("mlx5_bond_0:1", true, true);
  lag.kind = "roce", lag.netdev = "bond0";
  EXPECT_EQ(rail_names({nic("bond0", false, true, {"eth0", "eth1"}), nic("bond0.7", false, true, {"bond0"}),
                        eth0, eth1, lag}),
            Names{"mlx5_bond_0:1"});
  Nic soft = nic("rxe0:1", false, false);
  soft.kind = "roce", soft.netdev = "eth2";
  EXPECT_EQ(rail_names({nic("eth2", true, true), soft}), Names{"eth2"});
}

}  // namespace
}  // namespace assay
