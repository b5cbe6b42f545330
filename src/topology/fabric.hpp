// SPDX-License-Identifier: Apache-2.0
// Where NICs hang, from --topology: the only source of switches, racks and rails. Without it nothing is
// claimed.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "topology/topology.hpp"

namespace assay {

/// One cable: a NIC (or all NICs of a node) and the switch it ends in.
struct FabricPort {
  std::string node;  ///< host name
  std::string nic;   ///< eth0, mlx5_0:1; empty: all NICs of the node
  std::string guid;  ///< of the adapter, 16 hex digits, and its port; empty when the file names NICs
  std::string leaf, port, rack, rail;  ///< switch, its port, ...; empty if not in the file
};

struct Fabric {
  std::string format;  ///< csv|slurm|ibnetdiscover
  std::vector<FabricPort> ports;
  std::vector<std::pair<std::string, std::string>> uplinks;  ///< switch, the switch above it (Slurm)
};

/// Largest topology file and longest name that are taken.
inline constexpr std::size_t fabric_file_limit = 64UL * 1024 * 1024, fabric_name_limit = 128;

/// A topology from text, the format found out from it: CSV with a header (node, nic, switch and as many of
/// port, rack, rail as there are), a Slurm topology.conf (tree) or the output of ibnetdiscover. Throws
/// Error(usage) "NAME:LINE: what is wrong".
Fabric parse_fabric(const std::string& text, const std::string& name);

/// What of the fabric this job has, and what it lacks.
struct FabricCoverage {
  std::size_t nodes = 0;                   ///< with at least one NIC placed
  std::size_t nics = 0;                    ///< placed
  std::vector<std::string> unknown_nodes;  ///< of the job, not in the file
  std::vector<std::string> absent_nics;    ///< in the file for nodes of this job, but not found there
};

/// Fills leaf, leaf_port, rack and rail of the topology's NICs. Nodes match by host name, with or without the
/// domain; NICs by GUID, and by name where one of both has none. Pure but for `topology`.
FabricCoverage apply_fabric(const Fabric& fabric, Topology& topology);

/// Index of each node's switch, where all its placed NICs hang on the same one; -1 otherwise. Switches are
/// counted in the order of their names.
std::vector<int> leaf_of_nodes(const Topology& topology);

/// One line for people: "topology (csv): 4 of 4 nodes, 4 NICs, 2 switches, 2 racks"; what is lacking on lines
/// of its own.
std::string describe_fabric(const Fabric& fabric, const FabricCoverage& coverage, const Topology& topology);

}  // namespace assay
