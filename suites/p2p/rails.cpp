// SPDX-License-Identifier: Apache-2.0
#include "suites/p2p/rails.hpp"

#include <algorithm>
#include <map>

namespace assay::p2p {
namespace {

/// Whether `holds` is true of the NIC or of one below it: a bond, a VLAN on the bond, a tunnel in the VLAN.
template <typename Predicate>
bool holds_down(const Node& node, const Nic& nic, const Predicate& holds, int depth = 0) {
  constexpr int deepest = 8;
  if (holds(nic)) return true;
  return depth < deepest && std::any_of(node.nics.begin(), node.nics.end(), [&](const Nic& other) {
           return std::find(nic.lower.begin(), nic.lower.end(), other.name) != nic.lower.end() &&
                  holds_down(node, other, holds, depth + 1);
         });
}

std::vector<const Nic*> usable(const Node& node) {
  const auto up = [](const Nic& nic) { return nic.state == "up" && nic.kind != "loopback"; };
  // A software port (Soft-RoCE) takes no NIC's place.
  const auto of_port = [&](const Nic& nic) {
    return std::any_of(node.nics.begin(), node.nics.end(), [&](const Nic& port) {
      return !port.virtual_device && !port.netdev.empty() && port.netdev == nic.name;
    });
  };
  const auto open = [&](const Nic& nic) { return up(nic) && nic.addressed && !nic.bridge; };
  const auto hardware = [&](const Nic& nic) { return up(nic) && !nic.virtual_device; };
  const bool any_hardware = std::any_of(node.nics.begin(), node.nics.end(), hardware);
  std::vector<const Nic*> found;
  for (const Nic& nic : node.nics) {
    if (!open(nic) || holds_down(node, nic, of_port)) continue;
    if (any_hardware && !holds_down(node, nic, hardware)) continue;
    // The interface with the address carries what the ones above it send.
    const auto carried = [&](const Nic& other) { return &other != &nic && open(other); };
    if (!holds_down(node, nic, carried)) found.push_back(&nic);
  }
  return found;
}

const Nic* named(const std::vector<const Nic*>& nics, const std::string& name) {
  const auto at = std::find_if(nics.begin(), nics.end(), [&](const Nic* nic) { return nic->name == name; });
  return at == nics.end() ? nullptr : *at;
}

/// The ranks of a node, those of the NIC's domain first.
std::vector<int> by_nearness(const Topology& topology, std::size_t node, const Nic& nic) {
  auto ranks = topology.ranks_of(static_cast<int>(node));
  std::stable_partition(ranks.begin(), ranks.end(), [&](int rank) {
    return nic.numa >= 0 && topology.ranks[static_cast<std::size_t>(rank)].numa == nic.numa;
  });
  return ranks;
}

}  // namespace

std::vector<Rail> rails(const Topology& topology) {
  std::vector<std::vector<const Nic*>> nics;
  for (std::size_t node = 0; node < topology.nodes.size(); ++node) {
    if (topology.ranks_of(static_cast<int>(node)).empty()) return {};
    nics.push_back(usable(topology.nodes[node]));
  }
  std::vector<Rail> all;
  for (const Nic* first : nics.front()) {
    Rail rail{first->name, first->kind == "ethernet" ? "tcp" : "ib", {}, {}, {}};
    std::map<std::string, int> switches;
    for (std::size_t node = 0; node < nics.size(); ++node) {
      const Nic* nic = named(nics[node], rail.nic);
      if (nic == nullptr) break;
      const auto near = by_nearness(topology, node, *nic);
      rail.ranks.push_back(near[0]);
      rail.seconds.push_back(near.size() > 1 ? near[1] : -1);
      rail.leaves.push_back(
          nic->leaf.empty()
              ? -1
              : switches.try_emplace(nic->leaf, static_cast<int>(switches.size())).first->second);
    }
    if (rail.ranks.size() == nics.size()) all.push_back(std::move(rail));
  }
  return all;
}

Schedule rail_schedule(const Rail& rail, const RandomStream& random, std::size_t max_rounds) {
  std::vector<std::vector<int>> by_node;
  for (const int rank : rail.ranks) by_node.push_back({rank});
  return cross_schedule(by_node, random, max_rounds, rail.leaves);
}

Rail across(const Rail& near, const Rail& far) {
  Rail both = near;
  for (std::size_t node = 0; node < both.ranks.size(); ++node) {
    if (!is_far(node)) continue;
    both.ranks[node] = far.ranks[node];
    both.leaves[node] = far.leaves[node];
  }
  return both;
}

std::size_t across_rounds(std::size_t nodes, std::size_t max_rounds) noexcept {
  return std::min({(nodes + 1) / 2, static_cast<std::size_t>(sampled_rounds), max_rounds});
}

Schedule across_schedule(const Rail& both, const RandomStream& random, std::size_t max_rounds) {
  std::vector<int> near, far;
  for (std::size_t node = 0; node < both.ranks.size(); ++node)
    (is_far(node) ? far : near).push_back(both.ranks[node]);
  Schedule schedule;
  const std::size_t rounds = across_rounds(both.ranks.size(), max_rounds);
  const auto shifts = random.permutation(near.size());
  for (std::size_t r = 0; r < rounds && !far.empty(); ++r) {
    Round round;
    for (std::size_t i = 0; i < far.size(); ++i) {
      const int a = far[i], b = near[(i + shifts[r]) % near.size()];
      round.push_back({std::min(a, b), std::max(a, b)});
    }
    schedule.push_back(std::move(round));
  }
  return schedule;
}

Schedule loopback_schedule(const Rail& rail) {
  Round round;
  for (std::size_t node = 0; node < rail.ranks.size(); ++node)
    if (rail.seconds[node] >= 0)
      round.push_back(
          {std::min(rail.ranks[node], rail.seconds[node]), std::max(rail.ranks[node], rail.seconds[node])});
  return {round};
}

}  // namespace assay::p2p
