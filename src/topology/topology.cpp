// SPDX-License-Identifier: Apache-2.0
#include "topology/topology.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.hpp"

namespace assay {
namespace {

bool holds(const std::vector<int>& cpus, int cpu) {
  return std::find(cpus.begin(), cpus.end(), cpu) != cpus.end();
}

// Index of the last-level cache of one CPU, or -1: levels differ between parts of a hybrid machine.
int last_level_cache(const std::vector<Cache>& caches, int cpu) {
  int best = -1;
  for (std::size_t i = 0; i < caches.size(); ++i) {
    if (!holds(caches[i].cpus, cpu)) continue;
    if (best < 0 || caches[i].level > caches[static_cast<std::size_t>(best)].level)
      best = static_cast<int>(i);
  }
  return best;
}

/// What makes a node's kind, as numbers.
std::vector<std::int64_t> looks_of(const Topology& topology, int index) {
  const Node& node = topology.nodes[static_cast<std::size_t>(index)];
  std::vector<std::int64_t> looks{node.sockets, node.cores};
  const auto add = [&looks](const std::vector<int>& cpus) {
    looks.push_back(static_cast<std::int64_t>(cpus.size()));
    looks.insert(looks.end(), cpus.begin(), cpus.end());
  };
  for (const Cache& cache : node.caches) {
    looks.insert(looks.end(), {-1, cache.level, static_cast<std::int64_t>(cache.bytes)});
    add(cache.cpus);
  }
  for (const NumaDomain& domain : node.numa) {
    looks.insert(looks.end(), {-2, domain.os_index});
    add(domain.cpus);
  }
  for (const int rank : topology.ranks_of(index)) {
    const RankPlace& place = topology.ranks[static_cast<std::size_t>(rank)];
    looks.insert(looks.end(), {-3, place.threads, place.numa});
    add(place.cpus);
  }
  return looks;
}

}  // namespace

std::string Node::id_of(const Nic& nic) const {
  const auto at = static_cast<std::size_t>(&nic - nics.data());
  return at < nic_ids.size() ? nic_ids[at] : std::string();
}

std::string Node::gpu_uuid(std::size_t gpu) const {
  return gpu < gpu_uuids.size() ? gpu_uuids[gpu] : std::string();
}

std::string Node::gpu_serial(std::size_t gpu) const {
  return gpu < gpu_serials.size() ? gpu_serials[gpu] : std::string();
}

int Node::gpu_of(const std::string& uuid) const noexcept {
  const auto at = std::find(gpu_uuids.begin(), gpu_uuids.end(), uuid);
  return at == gpu_uuids.end() ? -1 : static_cast<int>(at - gpu_uuids.begin());
}

bool Node::is_slice(std::size_t gpu) const { return gpu_uuid(gpu).starts_with("MIG"); }

std::size_t Node::whole_gpus() const {
  std::size_t count = 0;
  for (std::size_t gpu = 0; gpu < gpus.size(); ++gpu) count += is_slice(gpu) ? 0 : 1;
  return count;
}

std::string Node::gpu_name(std::size_t gpu) const {
  const int number = gpus[gpu].number;
  return "gpu" + std::to_string(number < 0 ? static_cast<int>(gpu) : number);
}

bool Node::unseen_by_nvml(std::size_t gpu) const {
  return gpus[gpu].name.empty() && gpus[gpu].pci.empty() && !is_slice(gpu);
}

std::uint64_t Node::llc_bytes_of(const std::vector<int>& cpus) const noexcept {
  std::uint64_t bytes = 0;
  std::vector<bool> seen(caches.size(), false);
  for (const int cpu : cpus) {
    const int cache = last_level_cache(caches, cpu);
    if (cache < 0 || seen[static_cast<std::size_t>(cache)]) continue;
    seen[static_cast<std::size_t>(cache)] = true;
    bytes += caches[static_cast<std::size_t>(cache)].bytes;
  }
  return bytes;
}

std::uint64_t Node::llc_bytes_total() const noexcept {
  // Each rank that leads a node asks all nodes: one pass over the caches, no search for each CPU.
  std::vector<const Cache*> last;  // by CPU
  for (const Cache& cache : caches)
    for (const int cpu : cache.cpus) {
      const auto at = static_cast<std::size_t>(cpu);
      if (at >= last.size()) last.resize(at + 1);
      if (last[at] == nullptr || cache.level > last[at]->level) last[at] = &cache;
    }
  std::uint64_t bytes = 0;
  for (const Cache* cache : std::set<const Cache*>(last.begin(), last.end()))
    if (cache != nullptr) bytes += cache->bytes;
  return bytes;
}

int Node::numa_of(const std::vector<int>& cpus) const noexcept {
  if (cpus.empty()) return -1;
  for (const auto& domain : numa) {
    if (std::all_of(cpus.begin(), cpus.end(), [&](int cpu) { return holds(domain.cpus, cpu); }))
      return domain.os_index;
  }
  return -1;
}

void Topology::index_ranks() {
  node_ranks.assign(nodes.size(), {});
  for (const auto& place : ranks) node_ranks[static_cast<std::size_t>(place.node)].push_back(place.rank);
}

std::vector<int> Topology::ranks_of(int node) const {
  if (!node_ranks.empty()) return node_ranks[static_cast<std::size_t>(node)];
  std::vector<int> found;
  for (const auto& place : ranks) {
    if (place.node == node) found.push_back(place.rank);
  }
  return found;
}

std::size_t Topology::rank_count(int node) const {
  return node_ranks.empty() ? ranks_of(node).size() : node_ranks[static_cast<std::size_t>(node)].size();
}

void Topology::index_kinds() {
  node_kinds.clear();
  std::map<std::vector<std::int64_t>, std::size_t> known;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const auto [at, added] = known.emplace(looks_of(*this, static_cast<int>(n)), node_kinds.size());
    if (added) node_kinds.push_back({static_cast<int>(n), 0});
    ++node_kinds[at->second].count;
  }
}

std::vector<NodeKind> Topology::kinds() const {
  if (!node_kinds.empty()) return node_kinds;
  std::vector<NodeKind> all;
  for (std::size_t n = 0; n < nodes.size(); ++n) all.push_back({static_cast<int>(n), 1});
  return all;
}

int Topology::max_local_size() const {
  int size = 0;
  for (const NodeKind& kind : node_kinds) size = std::max(size, static_cast<int>(rank_count(kind.node)));
  if (!node_kinds.empty()) return size;
  for (const auto& place : ranks) size = std::max(size, place.local_size);
  return size;
}

std::int64_t Topology::ranks_up_to(int per_node) const {
  std::int64_t sum = 0;
  for (const NodeKind& kind : kinds())
    sum += kind.count * std::min<std::int64_t>(per_node, static_cast<std::int64_t>(rank_count(kind.node)));
  return sum;
}

std::set<int> Topology::cpus_of(const std::vector<int>& of_ranks) const {
  std::set<int> cpus;
  for (const int rank : of_ranks) {
    const auto& own = ranks[static_cast<std::size_t>(rank)].cpus;
    cpus.insert(own.begin(), own.end());
  }
  return cpus;
}

Topology multiplied(const Topology& topology, std::int64_t count) {
  if (topology.nodes.size() != 1)
    throw_usage("--as-nodes: this launch has " + std::to_string(topology.nodes.size()) + " nodes of its own");
  if (count < 1 || count > 100000)
    throw_usage("--as-nodes: " + std::to_string(count) + " is not 1 to 100000 nodes");
  Topology many = topology;
  many.nodes.clear();
  many.ranks.clear();
  for (std::int64_t n = 0; n < count; ++n) {
    Node node = topology.nodes.front();
    const std::string number = std::to_string(n + 1);
    node.hostname = "node" + std::string(number.size() < 3 ? 3 - number.size() : 0, '0') + number;
    node.id = node.hostname;
    many.nodes.push_back(std::move(node));
    for (RankPlace place : topology.ranks) {
      place.rank = static_cast<int>(many.ranks.size());
      place.node = static_cast<int>(n);
      many.ranks.push_back(std::move(place));
    }
  }
  many.index_ranks();
  many.index_kinds();
  return many;
}

}  // namespace assay
