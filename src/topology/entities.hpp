// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "results/model.hpp"
#include "topology/topology.hpp"

namespace assay {

/// Names are used in paths, lists and tables: no blanks inside.
std::string without_blanks(std::string text);

/// The rows of /entities, equal on all ranks: cluster, nodes, their numa domains, sockets (cpu), dimms, nics,
/// GPUs (device, named node07/gpu3, whether a rank drives them or not), and one device per rank: its GPU, or
/// the host device, which is its core set, named node07/cores0-3. ".K" is added where ranks share one of
/// them. With --topology also racks (rack:R) and switches (switch:L).
class EntityTable {
 public:
  explicit EntityTable(const Topology& topology);

  const std::vector<results::Entity>& rows() const noexcept { return rows_; }
  int cluster() const noexcept { return 0; }
  int node(int node) const { return nodes_[static_cast<std::size_t>(node)]; }
  int device_of_rank(int rank) const { return devices_[static_cast<std::size_t>(rank)]; }
  int gpu(int node, int index) const {
    return gpus_[static_cast<std::size_t>(node)][static_cast<std::size_t>(index)];
  }
  int numa(int node, int os_index) const;                            ///< -1 if there is none
  int nic(int node, const std::string& name) const;                  ///< -1 if there is none
  int dimm(int node, const std::string& slot) const;                 ///< -1 if there is none
  int find(const std::string& kind, const std::string& name) const;  ///< -1 if there is none
  int node_of(int row) const noexcept;  ///< the node above, or itself; -1 if there is none

  /// The row of the link between two rows, added at its first use (rank 0 only).
  int link(int source, int destination);

  /// Takes over the rows that a resumed run had added behind these. Throws Error(usage) when `rows` do not
  /// begin with the rows of this table.
  void adopt(const std::vector<results::Entity>& rows);

 private:
  int add(results::Entity entity);
  void add_devices(const Topology& topology);
  void add_fabric(const Topology& topology);
  std::vector<results::Entity> rows_;
  std::vector<int> nodes_, devices_;
  std::vector<std::vector<int>> gpus_;  ///< of each node
  std::map<std::string, int> by_kind_name_;
};

}  // namespace assay
