// SPDX-License-Identifier: Apache-2.0
#include "topology/entities.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/random.hpp"
#include "base/system.hpp"

namespace assay {

std::string without_blanks(std::string text) {
  std::replace(text.begin(), text.end(), ' ', '_');
  return text;
}

namespace {

std::string own_id(const Node& node, std::size_t dimm) {
  if (dimm >= node.dimm_serials.size() || node.dimm_serials[dimm].empty()) return {};
  return node.dimms[dimm].manufacturer + "/" + node.dimms[dimm].part + "/" + node.dimm_serials[dimm];
}
std::string own_id(const Node& node, const Nic& nic) {
  return nic.virtual_device ? std::string() : node.id_of(nic);
}

// A number that the maker gave to a part names it only while no other part claims it: cloned firmware tables,
// and virtual hosts of one machine, show the same parts on several nodes.
class PartIds {
 public:
  explicit PartIds(const Topology& topology) {
    std::vector<std::uint64_t> claims;
    for (const Node& node : topology.nodes) {
      for (std::size_t i = 0; i < node.dimms.size(); ++i) claims.push_back(hash_text(own_id(node, i)));
      for (const Nic& nic : node.nics) claims.push_back(hash_text(own_id(node, nic)));
      for (const std::string& uuid : node.gpu_uuids) claims.push_back(hash_text(uuid));
    }
    std::sort(claims.begin(), claims.end());
    for (std::size_t i = 1; i < claims.size(); ++i)
      if (claims[i] == claims[i - 1] && (several_.empty() || several_.back() != claims[i]))
        several_.push_back(claims[i]);
  }
  /// Empty where the part has none of its own.
  std::string unique(std::string id) const {
    if (std::binary_search(several_.begin(), several_.end(), hash_text(id))) id.clear();
    return id;
  }

 private:
  std::vector<std::uint64_t> several_;
};

std::string map_key(const std::string& kind, const std::string& name) { return kind + ' ' + name; }

std::uint64_t pair_key(std::int32_t first, std::int32_t second) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(first)) << 32 |
         static_cast<std::uint32_t>(second);
}

}  // namespace

EntityTable::EntityTable(const Topology& topology) {
  add({"cluster", "cluster", "path", "cluster", -1, -1});
  add_parts(topology);
  add_devices(topology);
  add_fabric(topology);
  index();
}

void EntityTable::add_parts(const Topology& topology) {
  const PartIds ids(topology);
  for (std::size_t n = 0; n < topology.nodes.size(); ++n) {
    const Node& node = topology.nodes[n];
    nodes_.push_back(add({"node", node.id, node.id_source, node.hostname, 0, -1}));
    const auto part = [&](const char* kind, const std::string& name, const std::string& id = {},
                          const char* source = "") {
      return add_part(static_cast<int>(n), kind, name, -1, ids.unique(id), source);
    };
    for (std::size_t socket = 0; socket < node.socket_pus.size(); ++socket)
      part("cpu", "cpu" + std::to_string(socket));
    for (const auto& domain : node.numa) part("numa", "numa" + std::to_string(domain.os_index));
    for (std::size_t i = 0; i < node.dimms.size(); ++i)
      part("dimm", without_blanks(node.dimms[i].slot), own_id(node, i), "serial");
    for (const auto& nic : node.nics) part("nic", nic.name, own_id(node, nic), nic.id_source.c_str());
    gpus_.push_back(static_cast<int>(size()) - nodes_.back());
    for (std::size_t k = 0; k < node.gpus.size(); ++k)
      part("device", node.gpu_name(k), node.gpu_uuid(k), "uuid");
  }
}

// What each rank measures with: a GPU of its own is there already, a shared one and the host device get a row
// for each rank.
void EntityTable::add_devices(const Topology& topology) {
  const auto part_of = [&](const RankPlace& place) {
    const Node& node = topology.nodes[static_cast<std::size_t>(place.node)];
    return place.gpu >= 0 ? node.gpu_name(static_cast<std::size_t>(place.gpu))
                          : "cores" + format_cpu_list(place.cpus);
  };
  std::map<std::pair<int, std::string>, int> sharers, next;
  for (const auto& place : topology.ranks) ++sharers[{place.node, part_of(place)}];
  for (const auto& place : topology.ranks) {
    const std::string part = part_of(place);
    const std::pair<int, std::string> key{place.node, part};
    const bool alone = sharers[key] == 1;
    if (place.gpu >= 0 && alone) {
      devices_.push_back(gpu(place.node, place.gpu));
      rows_[static_cast<std::size_t>(devices_.back())].rank = place.rank;
      continue;
    }
    const std::string number = alone ? "" : "." + std::to_string(next[key]++);
    const results::Entity whole =
        place.gpu >= 0 ? row(gpu(place.node, place.gpu)) : results::Entity{"", "", "path", "", -1, -1};
    devices_.push_back(add_part(place.node, "device", part + number, place.rank,
                                whole.id_source == "path" ? "" : whole.id + number, whole.id_source));
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
  const int row = static_cast<int>(size());
  whole_rows_.emplace(map_key(entity.kind, entity.name), row);
  rows_.push_back({static_cast<std::int32_t>(wholes_.size()), whole_part, entity.rank, -1});
  wholes_.push_back(std::move(entity));
  return row;
}

int EntityTable::add_part(int node, const std::string& kind, const std::string& name, int rank,
                          const std::string& id, const std::string& id_source) {
  const auto [part, added] =
      part_numbers_.try_emplace({kind, name}, static_cast<std::int32_t>(parts_.size()));
  if (added) parts_.push_back({kind, name});
  rows_.push_back({node, part->second, rank, id.empty() ? -1 : static_cast<std::int32_t>(ids_.size())});
  if (!id.empty()) ids_.append(id_source).append(" ").append(id).push_back('\0');
  return static_cast<int>(size()) - 1;
}

void EntityTable::index() {
  for (std::size_t row = 0; row < rows_.size(); ++row)
    if (rows_[row].part >= 0)
      part_rows_.emplace_back(pair_key(rows_[row].node, rows_[row].part), static_cast<std::int32_t>(row));
  std::sort(part_rows_.begin(), part_rows_.end());
  part_rows_.shrink_to_fit();
  rows_.shrink_to_fit();
  ids_.shrink_to_fit();
}

results::Entity EntityTable::row(int row) const {
  const Row& r = rows_[static_cast<std::size_t>(row)];
  if (r.part == whole_part) return whole(row);
  if (r.part == link_part) {
    const results::Entity a = this->row(r.node), b = this->row(r.rank);
    return {"link", a.id + ">" + b.id, "path", a.name + ">" + b.name, 0, -1};
  }
  const results::Entity& above = whole(node(r.node));
  const Part& part = parts_[static_cast<std::size_t>(r.part)];
  results::Entity entity{part.kind, "", "path", above.name + "/" + part.name, node(r.node), r.rank};
  const std::string own = r.id < 0 ? std::string() : std::string(ids_.c_str() + r.id);
  const auto blank = own.find(' ');
  if (r.id >= 0) entity.id_source = own.substr(0, blank);
  entity.id = r.id < 0 ? above.id + "/" + part.name : own.substr(blank + 1);
  return entity;
}

std::vector<results::Entity> EntityTable::rows(std::size_t from) const {
  std::vector<results::Entity> all;
  all.reserve(size() - std::min(from, size()));
  for (std::size_t row = from; row < size(); ++row) all.push_back(this->row(static_cast<int>(row)));
  return all;
}

int EntityTable::part_row(int node, const std::string& kind, const std::string& name) const {
  const auto part = part_numbers_.find({kind, name});
  if (part == part_numbers_.end()) return -1;
  const std::uint64_t key = pair_key(node, part->second);
  const auto at = std::lower_bound(part_rows_.begin(), part_rows_.end(), std::pair{key, std::int32_t{-1}});
  return at == part_rows_.end() || at->first != key ? -1 : at->second;
}

int EntityTable::find(const std::string& kind, const std::string& name) const {
  if (const auto found = whole_rows_.find(map_key(kind, name)); found != whole_rows_.end())
    return found->second;
  const auto slash = name.find('/');
  const auto host = whole_rows_.find(map_key("node", name.substr(0, slash)));
  if (slash == std::string::npos || host == whole_rows_.end()) return -1;
  const auto node = std::lower_bound(nodes_.begin(), nodes_.end(), host->second) - nodes_.begin();
  return part_row(static_cast<int>(node), kind, name.substr(slash + 1));
}

int EntityTable::node_of(int row) const noexcept {
  for (int step = 0; step < 64 && row >= 0 && static_cast<std::size_t>(row) < size(); ++step) {
    const Row& r = rows_[static_cast<std::size_t>(row)];
    if (r.part >= 0) return node(r.node);
    if (r.part == link_part) return -1;
    if (whole(row).kind == "node") return row;
    row = whole(row).parent;
  }
  return -1;
}

int EntityTable::cpu(int node, std::size_t socket) const {
  return part_row(node, "cpu", "cpu" + std::to_string(socket));
}

int EntityTable::numa(int node, int os_index) const {
  return part_row(node, "numa", "numa" + std::to_string(os_index));
}

int EntityTable::nic(int node, const std::string& name) const { return part_row(node, "nic", name); }

int EntityTable::dimm(int node, const std::string& slot) const {
  return part_row(node, "dimm", without_blanks(slot));
}

void EntityTable::adopt(const std::vector<results::Entity>& rows) {
  const auto same = [&](std::size_t i) {
    const results::Entity own = row(static_cast<int>(i));
    const results::Entity& other = rows[i];
    return own.kind == other.kind && own.id == other.id && own.parent == other.parent &&
           own.rank == other.rank;
  };
  const std::size_t known = size();
  bool equal = rows.size() >= known;
  for (std::size_t i = 0; equal && i < known; ++i) equal = same(i);
  if (!equal) throw_usage("--resume: the machine is not the one that the run was started on");
  for (std::size_t i = known; i < rows.size(); ++i) add(rows[i]);
}

int EntityTable::left_out(const std::string& host) {
  const int known = find("node", host);
  return known >= 0 ? known : add({"node", host, "hostname", host, 0, -1});
}

int EntityTable::server(const std::string& name) {
  const std::string full = "server:" + without_blanks(name);
  const int known = find("server", full);
  return known >= 0 ? known : add({"server", full, "path", full, 0, -1});
}

int EntityTable::link(int source, int destination) {
  const auto [link, added] = links_.try_emplace(pair_key(source, destination), static_cast<int>(size()));
  if (!added) return link->second;
  rows_.push_back({source, link_part, destination, -1});
  // A resumed run may have adopted it as a row like any other.
  const auto adopted = whole_rows_.find(map_key("link", name(link->second)));
  if (adopted == whole_rows_.end()) return link->second;
  rows_.pop_back();
  return link->second = adopted->second;
}

std::size_t EntityTable::bytes() const noexcept {
  return rows_.capacity() * sizeof(Row) + ids_.capacity() + wholes_.capacity() * sizeof(results::Entity) +
         part_rows_.capacity() * sizeof part_rows_.front() + sizeof(int) * (nodes_.size() + devices_.size());
}

}  // namespace assay
