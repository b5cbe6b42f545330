// SPDX-License-Identifier: Apache-2.0
#include "simulate/schedule.hpp"

#include <algorithm>
#include <map>

namespace assay::simulate {
namespace {

using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

std::vector<std::int64_t> shuffled(const std::vector<std::int64_t>& items, const RandomStream& random) {
  std::vector<std::int64_t> out;
  for (const std::size_t i : random.permutation(items.size())) out.push_back(items[i]);
  return out;
}

/// Round `turn` of the circle method: the last place stays, the others move on; an empty last place is a bye.
Pairs circle_round(const std::vector<std::int64_t>& items, std::size_t turn) {
  const std::size_t places = items.size() + items.size() % 2, moving = places - 1;
  Pairs round;
  for (std::size_t i = 0; i < places / 2; ++i) {
    const std::size_t left = i == 0 ? moving : (turn + i) % moving, right = (turn + moving - i) % moving;
    if (left < items.size() && right < items.size()) round.emplace_back(items[left], items[right]);
  }
  return round;
}

/// Nodes by what their NICs hang on: nodes of one pod share all leaves.
std::map<std::int64_t, std::vector<std::int64_t>> pods(const Machine& machine) {
  std::map<std::int64_t, std::vector<std::int64_t>> groups;
  const std::int64_t nics = machine.spec().nics_per_node;
  for (std::int64_t n = 0; n < machine.nodes(); ++n)
    groups[machine.spec().leaves > 0 ? machine.leaf_of_nic(n * nics) : n / 32].push_back(n);
  return groups;
}

/// Rounds of pairs inside every group, the groups side by side.
std::vector<Pairs> inside(const std::map<std::int64_t, std::vector<std::int64_t>>& groups,
                          const RandomStream& random) {
  std::vector<Pairs> rounds(near_rounds);
  for (const auto& [group, members] : groups) {
    if (members.size() < 2) continue;
    const RandomStream stream = random.child("inside").child(std::to_string(group));
    const auto players = shuffled(members, stream);
    const auto turns = stream.child("turns").permutation(players.size() + players.size() % 2 - 1);
    for (std::size_t r = 0; r < rounds.size() && r < turns.size(); ++r)
      for (const auto& pair : circle_round(players, turns[r])) rounds[r].push_back(pair);
  }
  std::erase_if(rounds, [](const Pairs& round) { return round.empty(); });
  return rounds;
}

std::vector<Pairs> node_rounds(const Machine& machine, const RandomStream& random, std::int64_t asked) {
  std::vector<std::int64_t> nodes;
  for (std::int64_t n = 0; n < machine.nodes(); ++n) nodes.push_back(n);
  if (nodes.size() < 2) return {};
  const auto players = shuffled(nodes, random.child("nodes"));
  const auto turns = random.child("turns").permutation(nodes.size() + nodes.size() % 2 - 1);
  const auto wanted = static_cast<std::size_t>(asked > 0 ? asked : machine.spec().rounds);
  const bool sampled = wanted == 0 && machine.nodes() > full_nodes;
  const std::size_t most = wanted > 0 ? wanted : sampled ? sampled_rounds : turns.size();
  std::vector<Pairs> rounds;
  for (std::size_t r = 0; r < std::min(most, turns.size()); ++r)
    rounds.push_back(circle_round(players, turns[r]));
  if (!sampled) return rounds;
  for (Pairs& round : inside(pods(machine), random)) rounds.push_back(std::move(round));
  return rounds;
}

}  // namespace

Rounds cross_rounds(const Machine& machine, const std::string& case_name, std::int64_t asked,
                    const std::vector<Pairs>& more) {
  Rounds rounds;
  const RandomStream random = machine.run_stream("schedule/" + case_name);
  // Where a node has several NICs they hang on different switches, and what is measured is a NIC.
  const bool by_nic = machine.spec().nics_per_node > 1;
  const std::int64_t per_node = by_nic ? machine.spec().nics_per_node : machine.spec().devices_per_node;
  const auto row = [&](std::int64_t part) {
    return by_nic ? machine.nic_row(part) : machine.device_row(part);
  };
  std::vector<Pairs> all = node_rounds(machine, random, asked);
  all.insert(all.end(), more.begin(), more.end());
  for (const Pairs& pairs : all) {
    auto& round = rounds.emplace_back();
    for (const auto& [a, b] : pairs) {
      for (std::int64_t k = 0; k < per_node; ++k) {
        const std::int32_t left = row(a * per_node + k), right = row(b * per_node + k);
        round.push_back({left, right});
        round.push_back({right, left});
      }
    }
  }
  return rounds;
}

}  // namespace assay::simulate
