// SPDX-License-Identifier: Apache-2.0
// Bounds of what is between GPUs.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "topology/gpu_bounds.hpp"
#include "topology/inventory_tables.hpp"

namespace assay {
namespace {

constexpr const char* by_nvlink = "NVLinks up x rate";
constexpr const char* by_pcie = "PCIe generation x lanes";
constexpr const char* by_network = "the slower of PCIe and NICs";

const Node& node_of(const Topology& topology, int rank) {
  return topology.nodes[static_cast<std::size_t>(topology.ranks[static_cast<std::size_t>(rank)].node)];
}

/// Null where it has none of its own.
const Gpu* gpu_of(const Topology& topology, int rank) {
  const RankPlace& place = topology.ranks[static_cast<std::size_t>(rank)];
  if (place.gpu < 0 || place.shares_gpu) return nullptr;
  return &node_of(topology, rank).gpus[static_cast<std::size_t>(place.gpu)];
}

bool has_links(const Gpu& gpu) { return gpu.nvlinks_up > 0; }

/// Of `from` that lead to `to`; NaN where the driver does not say where they lead.
double links_between(const Gpu& from, const Gpu& to) {
  if (!has_links(from)) return 0;
  if (from.nvlink_ends.empty()) return unsupported;
  return static_cast<double>(
      std::count_if(from.nvlink_ends.begin(), from.nvlink_ends.end(),
                    [&](const std::string& end) { return end == "switch" || end == to.pci; }));
}

/// B/s one way of the NVLinks between two GPUs; 0: there are none.
double nvlink_rate(const Gpu& a, const Gpu& b) {
  const double out = links_between(a, b) * a.nvlink_rate_bytes_per_s;
  const double in = links_between(b, a) * b.nvlink_rate_bytes_per_s;
  if (!has_links(a) || !has_links(b)) return 0;
  return std::isnan(out) || std::isnan(in) ? unsupported : std::min(out, in);
}

double smaller(double a, double b) { return std::isnan(a) || std::isnan(b) ? unsupported : std::min(a, b); }

double nvlink_floor(LinkUse use) {
  return use == LinkUse::copy      ? bounded::nvlink_copy.floor
         : use == LinkUse::message ? bounded::nvlink_message.floor
                                   : bounded::nvlink_collective.floor;
}

struct NearNics {
  std::vector<const Nic*> nics;
  bool certain = false;  ///< one, behind the same bridge, that needs no kernel: what messages take
};

NearNics near_nics(const Node& node, const Gpu& gpu) {
  NearNics near;
  const auto is_fabric = [](const Nic* nic) { return nic->kind == "infiniband" || nic->kind == "roce"; };
  // The network interface on a port is that port, and a virtual function of it has no rate of its own.
  const auto nics = physical_nics(node);
  for (const PciLink& link : node.pci_links) {
    if (link.address != gpu.pci) continue;
    for (const bool fabric : {true, false}) {
      for (const Nic* nic : nics)
        if (is_fabric(nic) == fabric && nic->state == "up" && nic->rate_bytes_per_s > 0 &&
            std::find(link.near_nics.begin(), link.near_nics.end(), nic->name) != link.near_nics.end())
          near.nics.push_back(nic);
      if (near.nics.empty()) continue;
      const auto ports = std::count_if(nics.begin(), nics.end(), is_fabric);
      near.certain = fabric && near.nics.size() == 1 && (link.near_by == "pci" || ports == 1);
      break;
    }
  }
  return near;
}

/// What a rank's GPU may claim of the NICs next to it while the others of its node send, too.
GpuBound network_bound(const Topology& topology, int rank) {
  const Gpu* mine = gpu_of(topology, rank);
  if (mine == nullptr) return {};
  const Node& node = node_of(topology, rank);
  std::map<const Nic*, int> users;
  for (const int other : topology.ranks_of(topology.ranks[static_cast<std::size_t>(rank)].node))
    if (const Gpu* gpu = gpu_of(topology, other))
      for (const Nic* nic : near_nics(node, *gpu).nics) ++users[nic];
  const NearNics near = near_nics(node, *mine);
  if (near.nics.empty()) return {};
  double rate = 0;
  for (const Nic* nic : near.nics) rate += nic->rate_bytes_per_s / users[nic];
  return {rate, by_network, near.certain ? bounded::network_message.floor : 0.0};
}

/// Of all NICs next to the GPUs of `ranks`, which are of one node.
double nics_of_node(const Topology& topology, const std::vector<int>& ranks, bool& certain) {
  std::set<const Nic*> nics;
  for (const int rank : ranks) {
    const Gpu* gpu = gpu_of(topology, rank);
    if (gpu == nullptr) return unsupported;
    const NearNics near = near_nics(node_of(topology, rank), *gpu);
    certain = certain && near.certain;
    nics.insert(near.nics.begin(), near.nics.end());
  }
  double rate = 0;
  for (const Nic* nic : nics) rate += nic->rate_bytes_per_s;
  return rate > 0 ? rate : unsupported;
}

/// Of ranks of one node.
GpuBound collective_in_node(const Topology& topology, const std::vector<int>& ranks) {
  GpuBound nvlink{std::numeric_limits<double>::infinity(), by_nvlink, bounded::nvlink_collective.floor};
  GpuBound pcie{std::numeric_limits<double>::infinity(), by_pcie, bounded::peer_pcie.floor};
  bool linked = true;
  for (const int rank : ranks) {
    const Gpu* gpu = gpu_of(topology, rank);
    if (gpu == nullptr) return {};
    for (const int other : ranks) {
      const Gpu* peer = gpu_of(topology, other);
      if (other == rank || peer == nullptr) continue;
      const double rate = nvlink_rate(*gpu, *peer);
      if (std::isnan(rate)) return {};
      linked = linked && rate > 0;
    }
    nvlink.rate = smaller(nvlink.rate, gpu->nvlinks_up * gpu->nvlink_rate_bytes_per_s);
    pcie.rate = smaller(pcie.rate, host_link_bound(*gpu).rate);
  }
  return linked ? nvlink : pcie;
}

}  // namespace

GpuBound link_bound_of_case(const Topology& topology, LinkUse use, bool across_nodes) {
  const bool collective = use == LinkUse::collective;
  if (across_nodes)
    return {unsupported, by_network,
            collective ? bounded::network_collective.floor : bounded::network_message.floor};
  for (const RankPlace& place : topology.ranks)
    if (const Gpu* gpu = gpu_of(topology, place.rank); gpu != nullptr && has_links(*gpu))
      return {unsupported, by_nvlink, nvlink_floor(use)};
  return {unsupported, by_pcie, bounded::peer_pcie.floor};
}

double fastest_nvlinks(const Topology& topology) {
  double fastest = 0;
  for (const NodeKind& kind : topology.kinds())
    for (const Gpu& gpu : topology.nodes[static_cast<std::size_t>(kind.node)].gpus)
      if (const double rate = gpu.nvlinks_up * gpu.nvlink_rate_bytes_per_s; rate > fastest) fastest = rate;
  return fastest;
}

GpuBound pair_bound(const Topology& topology, LinkUse use, int rank_a, int rank_b) {
  const Gpu *a = gpu_of(topology, rank_a), *b = gpu_of(topology, rank_b);
  if (a == nullptr || b == nullptr) return {};
  const double pcie = smaller(host_link_bound(*a).rate, host_link_bound(*b).rate);
  if (&node_of(topology, rank_a) == &node_of(topology, rank_b)) {
    const double rate = nvlink_rate(*a, *b);
    if (rate == 0) return {pcie, by_pcie, bounded::peer_pcie.floor};
    return {rate, by_nvlink, nvlink_floor(use)};
  }
  const GpuBound from = network_bound(topology, rank_a), to = network_bound(topology, rank_b);
  return {smaller(pcie, smaller(from.rate, to.rate)), by_network, std::min(from.floor, to.floor)};
}

GpuBound star_bound(const Topology& topology, int rank) {
  const Gpu* centre = gpu_of(topology, rank);
  if (centre == nullptr) return {};
  double to_others = 0;
  for (const int other : topology.ranks_of(topology.ranks[static_cast<std::size_t>(rank)].node)) {
    if (other == rank) continue;
    const Gpu* peer = gpu_of(topology, other);
    if (peer == nullptr) return {};
    const double rate = nvlink_rate(*centre, *peer);
    if (rate == 0) return {host_link_bound(*centre).rate, by_pcie, bounded::peer_pcie.floor};
    to_others += rate;  // NaN stays NaN
  }
  return {smaller(to_others, centre->nvlinks_up * centre->nvlink_rate_bytes_per_s), by_nvlink,
          nvlink_floor(LinkUse::copy)};
}

GpuBound collective_bound(const Topology& topology, const std::vector<int>& ranks) {
  std::map<int, std::vector<int>> nodes;
  for (const int rank : ranks) nodes[topology.ranks[static_cast<std::size_t>(rank)].node].push_back(rank);
  GpuBound bound{std::numeric_limits<double>::infinity(), by_network, bounded::network_collective.floor};
  for (const auto& [node, own] : nodes) {
    if (own.size() > 1) {
      const GpuBound inside = collective_in_node(topology, own);
      if (nodes.size() == 1) return inside;
      bound.rate = smaller(bound.rate, inside.rate);
    }
    if (nodes.size() == 1) return {};
    if (const Gpu* gpu = gpu_of(topology, own.front()); own.size() == 1 && gpu != nullptr)
      bound.rate = smaller(bound.rate, host_link_bound(*gpu).rate);
    bool certain = true;
    const double n = static_cast<double>(ranks.size()), m = static_cast<double>(nodes.size());
    const double outside = nics_of_node(topology, own, certain) * ((n - 1) / n) / ((m - 1) / m);
    bound.rate = smaller(bound.rate, outside);
    if (!certain) bound.floor = 0;
  }
  return bound;
}

}  // namespace assay
