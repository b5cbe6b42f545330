// SPDX-License-Identifier: Apache-2.0
#include "topology/entities.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/system.hpp"
#include "results/entity_tree.hpp"

namespace assay {

std::string without_blanks(std::string text) {
  std::replace(text.begin(), text.end(), ' ', '_');
  return text;
}

namespace {

// A number that the maker gave to a part names it only while no other part claims it: cloned firmware tables,
// and virtual hosts of one machine, show the same parts on several nodes.
class PartIds {
 public:
  explicit PartIds(const Topology& topology) {
    for (const Node& node : topology.nodes) {
      for (const Dimm& dimm : node.dimms) ++claims_[own_id(dimm)];
      for (const Nic& nic : node.nics) ++claims_[own_id(nic)];
      for (const Gpu& gpu : node.gpus) ++claims_[own_id(gpu)];
    }
  }
  /// Empty where the part has none of its own.
  template <typename Hardware>
  std::string unique_id(const Hardware& part) const {
    const std::string id = own_id(part);
    return id.empty() || claims_.at(id) > 1 ? std::string() : id;
  }

 private:
  static std::string own_id(const Dimm& dimm) {
    return dimm.serial.empty() ? std::string() : dimm.manufacturer + "/" + dimm.part + "/" + dimm.serial;
  }
  static std::string own_id(const Gpu& gpu) { return gpu.uuid; }
  static std::string own_id(const Nic& nic) { return nic.virtual_device ? std::string() : nic.id; }

  std::map<std::string, int> claims_;
};

std::string map_key(const std::string& kind, const std::string& name) { return kind + ' ' + name; }

}  // namespace

EntityTable::EntityTable(const Topology& topology) {
  const PartIds part_ids(topology);
  add({"cluster", "cluster", "path", "cluster", -1, -1});
  for (const Node& node : topology.nodes) {
    const int row = add({"node", node.id, node.id_source, node.hostname, 0, -1});
    nodes_.push_back(row);
    const auto add_part = [&](const std::string& kind, const std::string& part) {
      add({kind, node.id + "/" + part, "path", node.hostname + "/" + part, row, -1});
    };
    for (std::size_t socket = 0; socket < node.socket_pus.size(); ++socket)
      add_part("cpu", "cpu" + std::to_string(socket));
    for (const auto& domain : node.numa) add_part("numa", "numa" + std::to_string(domain.os_index));
    for (const auto& dimm : node.dimms) {
      const std::string slot = without_blanks(dimm.slot);
      const std::string id = part_ids.unique_id(dimm);
      add({"dimm", id.empty() ? node.id + "/" + slot : id, id.empty() ? "path" : "serial",
           node.hostname + "/" + slot, row, -1});
    }
    for (const auto& nic : node.nics) {
      const std::string id = part_ids.unique_id(nic);
      add({"nic", id.empty() ? node.id + "/" + nic.name : id, id.empty() ? "path" : nic.id_source,
           node.hostname + "/" + nic.name, row, -1});
    }
    auto& gpus = gpus_.emplace_back();
    for (std::size_t k = 0; k < node.gpus.size(); ++k) {
      const std::string part = "gpu" + std::to_string(k), id = part_ids.unique_id(node.gpus[k]);
      gpus.push_back(add({"device", id.empty() ? node.id + "/" + part : id, id.empty() ? "path" : "uuid",
                          node.hostname + "/" + part, row, -1}));
    }
  }
  add_devices(topology);
  add_fabric(topology);
}

// What each rank measures with: a GPU of its own is there already, a shared one and the host device get a row
// for each rank.
void EntityTable::add_devices(const Topology& topology) {
  const auto part_of = [](const RankPlace& place) {
    return place.gpu >= 0 ? "gpu" + std::to_string(place.gpu) : "cores" + format_cpu_list(place.cpus);
  };
  std::map<std::pair<int, std::string>, int> sharers, next;
  for (const auto& place : topology.ranks) ++sharers[{place.node, part_of(place)}];
  for (const auto& place : topology.ranks) {
    const Node& node = topology.nodes[static_cast<std::size_t>(place.node)];
    const std::string part = part_of(place);
    const std::pair<int, std::string> key{place.node, part};
    if (place.gpu >= 0 && sharers[key] == 1) {
      devices_.push_back(gpu(place.node, place.gpu));
      rows_[static_cast<std::size_t>(devices_.back())].rank = place.rank;
      continue;
    }
    const std::string number = sharers[key] > 1 ? "." + std::to_string(next[key]++) : "";
    const int whole = place.gpu >= 0 ? gpu(place.node, place.gpu) : -1;
    const std::string id = whole >= 0 ? rows_[static_cast<std::size_t>(whole)].id : node.id + "/" + part;
    const std::string source = whole >= 0 ? rows_[static_cast<std::size_t>(whole)].id_source : "path";
    devices_.push_back(add({"device", id + number, source, node.hostname + "/" + part + number,
                            nodes_[static_cast<std::size_t>(place.node)], place.rank}));
  }
}

// Behind all others, so that a topology file changes no row that was there without it.
void EntityTable::add_fabric(const Topology& topology) {
  std::map<std::string, std::set<std::string>> racks_of;  // by switch
  std::set<std::string> racks;
  for (const Node& node : topology.nodes)
    for (const Nic& nic : node.nics) {
      if (!nic.rack.empty()) racks.insert(nic.rack);
      if (nic.leaf.empty()) continue;
      auto& own = racks_of[nic.leaf];
      if (!nic.rack.empty()) own.insert(nic.rack);
    }
  for (const std::string& rack : racks) add({"rack", "rack:" + rack, "path", "rack:" + rack, 0, -1});
  for (const auto& [leaf, own] : racks_of) {
    const int parent = own.size() == 1 ? find("rack", "rack:" + *own.begin()) : 0;
    add({"switch", "switch:" + leaf, "path", "switch:" + leaf, parent, -1});
  }
}

int EntityTable::add(results::Entity entity) {
  const int row = static_cast<int>(rows_.size());
  by_kind_name_.emplace(map_key(entity.kind, entity.name), row);
  rows_.push_back(std::move(entity));
  return row;
}

int EntityTable::find(const std::string& kind, const std::string& name) const {
  const auto found = by_kind_name_.find(map_key(kind, name));
  return found == by_kind_name_.end() ? -1 : found->second;
}

int EntityTable::node_of(int row) const noexcept { return results::node_above(rows_, row); }

int EntityTable::numa(int node, int os_index) const {
  return find("numa",
              rows_[static_cast<std::size_t>(this->node(node))].name + "/numa" + std::to_string(os_index));
}

int EntityTable::nic(int node, const std::string& name) const {
  return find("nic", rows_[static_cast<std::size_t>(this->node(node))].name + "/" + name);
}

int EntityTable::dimm(int node, const std::string& slot) const {
  return find("dimm", rows_[static_cast<std::size_t>(this->node(node))].name + "/" + without_blanks(slot));
}

void EntityTable::adopt(const std::vector<results::Entity>& rows) {
  const auto same = [](const results::Entity& a, const results::Entity& b) {
    return a.kind == b.kind && a.id == b.id && a.parent == b.parent && a.rank == b.rank;
  };
  if (rows.size() < rows_.size() || !std::equal(rows_.begin(), rows_.end(), rows.begin(), same))
    throw_usage("--resume: the machine is not the one that the run was started on");
  for (std::size_t i = rows_.size(); i < rows.size(); ++i) add(rows[i]);
}

int EntityTable::link(int source, int destination) {
  const results::Entity& a = rows_[static_cast<std::size_t>(source)];
  const results::Entity& b = rows_[static_cast<std::size_t>(destination)];
  const std::string name = a.name + ">" + b.name;
  const int known = find("link", name);
  if (known >= 0) return known;
  return add({"link", a.id + ">" + b.id, "path", name, 0, -1});
}

}  // namespace assay
