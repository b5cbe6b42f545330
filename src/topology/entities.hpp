// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "results/model.hpp"
#include "topology/topology.hpp"

namespace assay {

/// Names are used in paths, lists and tables: no blanks inside.
std::string without_blanks(std::string text);

/// The rows of /entities, equal on all ranks: cluster, nodes, their numa domains, sockets (cpu), dimms, nics,
/// GPUs (device, named node07/gpu3, whether a rank drives them or not), and one device per rank: its GPU, or
/// the host device, which is its core set, named node07/cores0-3. ".K" is added where ranks share one of
/// them. With --topology also racks (rack:R) and switches (switch:L). Servers of storage
/// (server:NAME) are added by the cases that meet them.
///
/// Every process has the rows of all nodes, so names and ids are put together when they are asked for: a part
/// takes 16 bytes, the text that only it has, and 16 bytes of the index.
class EntityTable {
 public:
  explicit EntityTable(const Topology& topology);

  std::size_t size() const noexcept { return rows_.size(); }
  results::Entity row(int row) const;
  std::string name(int row) const { return this->row(row).name; }
  std::vector<results::Entity> rows(std::size_t from = 0) const;  ///< from there to the last
  int cluster() const noexcept { return 0; }
  int node(int node) const { return nodes_[static_cast<std::size_t>(node)]; }
  int device_of_rank(int rank) const { return devices_[static_cast<std::size_t>(rank)]; }
  int gpu(int node, int index) const {
    return this->node(node) + gpus_[static_cast<std::size_t>(node)] + index;
  }
  int cpu(int node, std::size_t socket) const;        ///< -1 if there is none
  int numa(int node, int os_index) const;             ///< -1 if there is none
  int nic(int node, const std::string& name) const;   ///< -1 if there is none
  int dimm(int node, const std::string& slot) const;  ///< -1 if there is none
  /// But for links; -1 if there is none.
  int find(const std::string& kind, const std::string& name) const;
  int node_of(int row) const noexcept;  ///< the node above, or itself; -1 if there is none
  std::size_t bytes() const noexcept;   ///< of memory, about

  /// The row of a node of which only the host name is known: it takes no part, or was lost before it was
  /// described. Added at its first use.
  int left_out(const std::string& host);

  /// The row of a server of storage, added at its first use (rank 0 only).
  int server(const std::string& name);

  /// The row of the link between two rows, added at its first use (rank 0 only).
  int link(int source, int destination);

  /// Takes over the rows that a resumed run had added behind these. Throws Error(usage) when `rows` do not
  /// begin with the rows of this table.
  void adopt(const std::vector<results::Entity>& rows);

 private:
  /// A part of a node, a link (`part` is `link_part`, from `node` to `rank`) or the row `node` of wholes_
  /// (`part` is `whole_part`).
  struct Row {
    std::int32_t node, part, rank;
    std::int32_t id;  ///< where its own id lies in ids_; -1: a path below the node's id
  };
  static constexpr std::int32_t whole_part = -1, link_part = -2;
  struct Part {
    std::string kind, name;
  };

  int add(results::Entity entity);
  int add_part(int node, const std::string& kind, const std::string& name, int rank = -1,
               const std::string& id = {}, const std::string& id_source = {});
  void add_parts(const Topology& topology);
  void add_devices(const Topology& topology);
  void add_fabric(const Topology& topology);
  void index();
  int part_row(int node, const std::string& kind, const std::string& name) const;
  const results::Entity& whole(int row) const {
    return wholes_[static_cast<std::size_t>(rows_[static_cast<std::size_t>(row)].node)];
  }

  std::vector<Row> rows_;
  std::vector<results::Entity> wholes_;
  std::vector<Part> parts_;  ///< that some node has; nodes have the same
  std::map<std::pair<std::string, std::string>, std::int32_t> part_numbers_;
  std::string ids_;  ///< "serial M/P/S1\0guid ..."
  std::vector<int> nodes_, devices_;
  std::vector<int> gpus_;  ///< of each node: its first one, behind the node's row
  std::vector<std::pair<std::uint64_t, std::int32_t>> part_rows_;  ///< by node and part, sorted
  std::map<std::string, int> whole_rows_;                          ///< by kind and name
  std::unordered_map<std::uint64_t, int> links_;                   ///< by source and destination
};

}  // namespace assay
