// SPDX-License-Identifier: Apache-2.0
// NICs by themselves: which there are, the ranks that drive them, and the pairs.
#pragma once

#include <string>
#include <vector>

#include "suites/p2p/schedule.hpp"

namespace assay::p2p {

/// The NICs of one name, one on each node.
struct Rail {
  std::string nic;  ///< "eth0", "mlx5_0:1"
  std::string
      transports;  ///< what UCX may use there: "ib" or "tcp", never memory that hosts of one machine share
  std::vector<int> ranks;    ///< by node: the first rank of the NIC's NUMA domain, else of the node
  std::vector<int> seconds;  ///< by node: the next rank of that domain, else another one of the node; -1
                             ///< where there is none
  std::vector<int> leaves;   ///< by node: which switch; -1 where no topology says
};

/// The NICs that every node has, in the order of the first node's: those that are up and no loopback, and
/// interfaces only if UCX can use them: with an IP address beyond their link, and no bridge. A bond or VLAN
/// stands for the ports below it that have no address. Left out are network interfaces on ports that are
/// there as InfiniBand or RoCE, and devices without hardware below them where a node has hardware.
std::vector<Rail> rails(const Topology& topology);

/// Nodes are matched as by cross_schedule, and one rank of each takes part.
Schedule rail_schedule(const Rail& rail, const RandomStream& random, std::size_t max_rounds);

/// Two rails as one for samples across them: of every second node the rank and the switch of `far`.
Rail across(const Rail& near, const Rail& far);
/// Whether a node of such a pair of rails uses the far one.
inline bool is_far(std::size_t node) noexcept { return node % 2 == 1; }

/// Every node of the near rail with nodes of the far one, in an order drawn from `random`: 8 rounds, or as
/// many as there are.
std::size_t across_rounds(std::size_t nodes, std::size_t max_rounds) noexcept;
Schedule across_schedule(const Rail& both, const RandomStream& random, std::size_t max_rounds);

/// One round: on every node the two ranks next to the NIC.
Schedule loopback_schedule(const Rail& rail);

}  // namespace assay::p2p
