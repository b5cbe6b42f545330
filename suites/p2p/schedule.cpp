// SPDX-License-Identifier: Apache-2.0
#include "suites/p2p/schedule.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <unordered_set>

#include "topology/fabric.hpp"

namespace assay::p2p {
namespace {

template <typename T>
std::vector<T> shuffled(const std::vector<T>& items, const RandomStream& random) {
  std::vector<T> out;
  out.reserve(items.size());
  for (const std::size_t i : random.permutation(items.size())) out.push_back(items[i]);
  return out;
}

Schedule first_rounds(Schedule schedule, std::size_t max_rounds) {
  if (schedule.size() > max_rounds) schedule.resize(max_rounds);
  return schedule;
}

void append(Round& to, const Round& from) { to.insert(to.end(), from.begin(), from.end()); }

/// One round of the circle method: the last player stays, the others move on by one place a turn. With odd
/// counts the last place is empty, and who meets it has a bye.
Round circle_round(const std::vector<int>& items, std::size_t turn) {
  const std::size_t places = items.size() + items.size() % 2;
  const std::size_t moving = places - 1;
  Round round;
  round.reserve(places / 2);
  for (std::size_t i = 0; i < places / 2; ++i) {
    const std::size_t left = i == 0 ? moving : (turn + i) % moving;
    const std::size_t right = (turn + moving - i) % moving;
    if (left < items.size() && right < items.size()) round.push_back({items[left], items[right]});
  }
  return round;
}

/// Matchings within each domain, domains side by side.
Schedule within_domains(const std::map<int, std::vector<int>>& domains, const RandomStream& random) {
  Schedule rounds(sampled_rounds);
  for (const auto& [domain, members] : domains) {
    const RandomStream stream = random.child("within").child(std::to_string(domain));
    const Schedule all = shuffled(tournament(shuffled(members, stream)), stream.child("rounds"));
    for (std::size_t r = 0; r < rounds.size() && r < all.size(); ++r) append(rounds[r], all[r]);
  }
  std::erase_if(rounds, [](const Round& round) { return round.empty(); });
  return rounds;
}

/// Matchings across domains: domains are matched, and their members paired in random order. Two domains that
/// are matched again are turned against each other by another distance, so that no two members meet twice. A
/// domain of one member has no other distance: then that round goes without the two.
Schedule across_domains(const std::map<int, std::vector<int>>& domains, const RandomStream& random) {
  std::vector<int> names;
  for (const auto& [domain, members] : domains) names.push_back(domain);
  const Schedule pairings = shuffled(tournament(names), random.child("domains"));
  Schedule rounds;
  for (std::size_t r = 0; r < sampled_near_rounds && !pairings.empty(); ++r) {
    Round& round = rounds.emplace_back();
    for (const Pair& pair : pairings[r % pairings.size()]) {
      const RandomStream stream =
          random.child("across").child(std::to_string(pair.a) + ":" + std::to_string(pair.b));
      const auto left = shuffled(domains.at(pair.a), stream.child("left"));
      const auto right = shuffled(domains.at(pair.b), stream.child("right"));
      const auto turns = stream.child("turns").permutation(std::max(left.size(), right.size()));
      const std::size_t met = r / pairings.size();
      if (met >= turns.size()) continue;
      const bool turn_left = left.size() > right.size();
      for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
        const std::size_t turned = (i + turns[met]) % turns.size();
        round.push_back({left[turn_left ? turned : i], right[turn_left ? i : turned]});
      }
    }
  }
  return rounds;
}

std::map<int, std::vector<int>> by_domain(const std::vector<int>& ranks, const std::vector<int>& numa) {
  std::map<int, std::vector<int>> domains;
  for (std::size_t i = 0; i < ranks.size(); ++i) domains[numa[i]].push_back(ranks[i]);
  return domains;
}

/// Item i with item i + distance, for every i whose block of `distance` items is even-numbered.
Round at_distance(std::size_t items, std::size_t distance) {
  Round round;
  for (std::size_t i = 0; i + distance < items; ++i)
    if (i / distance % 2 == 0) round.push_back({static_cast<int>(i), static_cast<int>(i + distance)});
  return round;
}

using PairSet = std::unordered_set<std::uint64_t>;
std::uint64_t unordered(int a, int b) {
  const auto [low, high] = std::minmax(a, b);
  return static_cast<std::uint64_t>(low) << 32 | static_cast<std::uint32_t>(high);
}

/// Exchanges partners between pairs of one switch (`leaves`, by node) and others, so that both cross and no
/// pair comes twice. A switch that holds more than half of the nodes keeps some pairs of its own.
void make_cross(Round& round, const std::vector<int>& leaves, const PairSet& used) {
  const auto crosses = [&](int a, int b) {
    return leaves[static_cast<std::size_t>(a)] != leaves[static_cast<std::size_t>(b)];
  };
  const auto good = [&](int a, int b) { return crosses(a, b) && !used.contains(unordered(a, b)); };
  for (Pair& pair : round) {
    if (good(pair.a, pair.b)) continue;
    for (Pair& other : round) {
      if (&other == &pair) continue;
      if (good(pair.a, other.b) && good(other.a, pair.b)) {
        std::swap(pair.b, other.b);
        break;
      }
      if (good(pair.a, other.a) && good(pair.b, other.b)) {
        std::swap(pair.b, other.a);
        break;
      }
    }
  }
}

/// Leaves out who have met, where they found nobody else.
void keep_new(Round& round, PairSet& used) {
  std::erase_if(round, [&](const Pair& pair) { return !used.insert(unordered(pair.a, pair.b)).second; });
}

/// Rounds that cross switches and rounds below them, mixed so that a cut schedule holds both.
Schedule leaf_matchings(const std::vector<int>& indices, const std::vector<int>& leaves,
                        const RandomStream& random) {
  PairSet used;
  const auto players = shuffled(indices, random.child("nodes"));
  const auto order = random.child("rounds").permutation(indices.size() + indices.size() % 2 - 1);
  Schedule crossing, inside(sampled_near_rounds);
  for (std::size_t r = 0; r < std::min<std::size_t>(sampled_rounds, order.size()); ++r) {
    Round round = circle_round(players, order[r]);
    make_cross(round, leaves, used);
    keep_new(round, used);
    crossing.push_back(std::move(round));
  }
  std::map<int, std::vector<int>> below;
  for (const int node : indices) below[leaves[static_cast<std::size_t>(node)]].push_back(node);
  for (const auto& [leaf, members] : below) {
    if (leaf < 0 || members.size() < 2) continue;
    const RandomStream stream = random.child("leaf").child(std::to_string(leaf));
    const auto shuffled_members = shuffled(members, stream);
    const auto turns = stream.child("rounds").permutation(members.size() + members.size() % 2 - 1);
    for (std::size_t r = 0; r < std::min(inside.size(), turns.size()); ++r)
      for (const Pair& pair : circle_round(shuffled_members, turns[r]))
        if (used.insert(unordered(pair.a, pair.b)).second) inside[r].push_back(pair);
  }
  std::erase_if(inside, [](const Round& round) { return round.empty(); });
  Schedule mixed;
  std::size_t x = 0, i = 0;
  for (const char kind : std::string_view("xxixxixixixx")) {
    if (kind == 'x' && x < crossing.size()) mixed.push_back(std::move(crossing[x++]));
    if (kind == 'i' && i < inside.size()) mixed.push_back(std::move(inside[i++]));
  }
  return mixed;
}

/// Whether the switches of the nodes are known and are several.
bool leaves_known(const std::vector<int>& leaves, std::size_t nodes) {
  return leaves.size() == nodes && std::count(leaves.begin(), leaves.end(), -1) == 0 &&
         std::set<int>(leaves.begin(), leaves.end()).size() >= 2;
}

/// Drawn rounds of a tournament, then neighbours. Who meet as neighbours exchange partners in the drawn
/// rounds: of 65 nodes and more everybody finds one, so that each draw has as many pairs. Only the drawn
/// rounds are built: all of them would be millions of pairs for thousands of nodes.
Schedule sampled_matchings(const std::vector<int>& indices, const RandomStream& random) {
  PairSet used;
  Schedule near;
  for (std::size_t i = 0; i < sampled_near_rounds; ++i)
    keep_new(near.emplace_back(at_distance(indices.size(), std::size_t{1} << i)), used);
  const auto players = shuffled(indices, random.child("nodes"));
  const auto order = random.child("rounds").permutation(indices.size() + indices.size() % 2 - 1);
  Schedule rounds;
  for (std::size_t r = 0; r < sampled_rounds; ++r) {
    Round& round = rounds.emplace_back(circle_round(players, order[r]));
    make_cross(round, indices, used);
    keep_new(round, used);
  }
  std::move(near.begin(), near.end(), std::back_inserter(rounds));
  return rounds;
}

Schedule node_matchings(std::size_t nodes, const RandomStream& random, std::size_t max_rounds,
                        const std::vector<int>& leaves, bool meetings) {
  std::vector<int> indices(nodes);
  std::iota(indices.begin(), indices.end(), 0);
  // Up to 64 nodes every two meet, unless the level is too short for it.
  const std::size_t all_rounds = nodes + nodes % 2 - 1;
  const bool wanted =
      nodes > max_full_nodes && max_rounds > sampled_rounds + sampled_near_rounds && max_rounds <= all_rounds;
  if (meetings || wanted) {
    const Meetings all(nodes, random);
    Schedule rounds;
    for (std::size_t r = 0; r < std::min(max_rounds, all.rounds()); ++r) rounds.push_back(all.nodes_of(r));
    return rounds;
  }
  const bool cut = nodes > max_full_nodes ||
                   max_rounds < std::min(all_rounds, sampled_rounds + sampled_near_rounds + std::size_t{1});
  if (cut && leaves_known(leaves, nodes)) return leaf_matchings(indices, leaves, random);
  if (nodes <= max_full_nodes) return shuffled(tournament(indices), random.child("rounds"));
  return sampled_matchings(indices, random);
}

}  // namespace

Meetings::Meetings(std::size_t nodes, const RandomStream& random) : places_(nodes) {
  if (nodes < 2) return;
  std::vector<int> indices(nodes);
  std::iota(indices.begin(), indices.end(), 0);
  players_ = shuffled(indices, random.child("nodes"));
  for (std::size_t place = 0; place < nodes; ++place)
    places_[static_cast<std::size_t>(players_[place])] = place;
  order_ = random.child("rounds").permutation(nodes + nodes % 2 - 1);
}

Round Meetings::nodes_of(std::size_t round) const { return circle_round(players_, order_.at(round)); }

/// In a turn of circle_round() the places of a pair add up to twice the turn; the last place meets the
/// turn's.
int Meetings::partner_of(std::size_t round, int node) const {
  const std::size_t moving = order_.size(), turn = order_.at(round);
  const std::size_t place = places_.at(static_cast<std::size_t>(node));
  const std::size_t other = place == moving ? turn
                            : place == turn ? moving
                                            : (2 * turn + moving - place) % moving;
  return other < players_.size() ? players_[other] : -1;
}

Schedule tournament(const std::vector<int>& items) {
  if (items.size() < 2) return {};
  Schedule rounds;
  for (std::size_t turn = 0; turn + 1 < items.size() + items.size() % 2; ++turn)
    rounds.push_back(circle_round(items, turn));
  return rounds;
}

Schedule node_schedule(const std::vector<int>& ranks, const std::vector<int>& numa,
                       const RandomStream& random, std::size_t max_rounds) {
  if (ranks.size() <= max_full_local_ranks)
    return first_rounds(shuffled(tournament(ranks), random.child("rounds")), max_rounds);
  const auto domains = by_domain(ranks, numa);
  Schedule near = within_domains(domains, random);
  Schedule far = across_domains(domains, random);
  // Alternate, two near ones to one far one, so that a cut schedule still holds both classes.
  Schedule all;
  for (std::size_t n = 0, f = 0; n < near.size() || f < far.size();) {
    for (int i = 0; i < 2 && n < near.size(); ++i) all.push_back(std::move(near[n++]));
    if (f < far.size()) all.push_back(std::move(far[f++]));
  }
  return first_rounds(std::move(all), max_rounds);
}

Schedule cross_schedule(const std::vector<std::vector<int>>& ranks_by_node, const RandomStream& random,
                        std::size_t max_rounds, const std::vector<int>& leaves, Lanes lanes, bool meetings) {
  Schedule rounds;
  for (const Round& node_round :
       first_rounds(node_matchings(ranks_by_node.size(), random, max_rounds, leaves, meetings), max_rounds)) {
    const std::size_t turn = rounds.size();
    Round& round = rounds.emplace_back();
    round.reserve(ranks_by_node.empty() ? 0 : node_round.size() * ranks_by_node.front().size());
    for (const Pair& nodes : node_round) {
      const auto& left = ranks_by_node[static_cast<std::size_t>(nodes.a)];
      const auto& right = ranks_by_node[static_cast<std::size_t>(nodes.b)];
      const std::size_t both = std::min(left.size(), right.size());
      const bool in_turn = lanes == Lanes::in_turn && both > 0;
      for (std::size_t k = in_turn ? turn % both : 0; k < (in_turn ? turn % both + 1 : both); ++k)
        round.push_back({left[k], right[k]});
    }
  }
  return rounds;
}

namespace {

/// The schedules of nodes, by place of a rank in its node: the same for all nodes whose ranks lie alike in
/// NUMA domains.
class NodeSchedules {
 public:
  NodeSchedules(const Topology& topology, const RandomStream& random, std::size_t max_rounds)
      : topology_(topology), random_(random), max_rounds_(max_rounds) {}

  const Schedule& of(const std::vector<int>& ranks) {
    std::vector<int> numa;
    for (const int rank : ranks) numa.push_back(topology_.ranks[static_cast<std::size_t>(rank)].numa);
    const auto [at, added] = known_.try_emplace(numa);
    if (added) {
      std::vector<int> places(ranks.size());
      std::iota(places.begin(), places.end(), 0);
      at->second = node_schedule(places, numa, random_, max_rounds_);
    }
    return at->second;
  }

 private:
  const Topology& topology_;
  const RandomStream& random_;
  std::size_t max_rounds_;
  std::map<std::vector<int>, Schedule> known_;
};

Schedule inside_nodes(const Topology& topology, const RandomStream& random, std::size_t max_rounds) {
  NodeSchedules schedules(topology, random, max_rounds);
  Schedule joined;
  for (std::size_t node = 0; node < topology.nodes.size(); ++node) {
    const std::vector<int> ranks = topology.ranks_of(static_cast<int>(node));
    const Schedule& own = schedules.of(ranks);
    if (joined.size() < own.size()) joined.resize(own.size());
    for (std::size_t r = 0; r < own.size(); ++r)
      for (const Pair& pair : own[r])
        joined[r].push_back(
            {ranks[static_cast<std::size_t>(pair.a)], ranks[static_cast<std::size_t>(pair.b)]});
  }
  return joined;
}

}  // namespace

Schedule make_schedule(Scope scope, const Topology& topology, const RandomStream& random,
                       std::size_t max_rounds, Lanes lanes, bool meetings) {
  if (scope == Scope::loopback) return {};
  if (scope == Scope::node) return inside_nodes(topology, random, max_rounds);
  std::vector<std::vector<int>> by_node;
  for (std::size_t node = 0; node < topology.nodes.size(); ++node)
    by_node.push_back(topology.ranks_of(static_cast<int>(node)));
  return cross_schedule(by_node, random, max_rounds, leaf_of_nodes(topology), lanes, meetings);
}

std::size_t round_count(Scope scope, const Topology& topology) {
  if (scope == Scope::loopback) return 1;
  return make_schedule(scope, topology, RandomStream(0), static_cast<std::size_t>(-1)).size();
}

std::size_t pair_count(const Schedule& schedule) noexcept {
  std::size_t count = 0;
  for (const Round& round : schedule) count += round.size();
  return count;
}

std::size_t pair_count(Scope scope, const Topology& topology, const RandomStream& random,
                       std::size_t max_rounds, const std::vector<int>& leaves, Lanes lanes, bool meetings) {
  std::size_t count = 0;
  if (scope == Scope::node) {
    NodeSchedules schedules(topology, random, max_rounds);
    for (const NodeKind& kind : topology.kinds())
      count += static_cast<std::size_t>(kind.count) * pair_count(schedules.of(topology.ranks_of(kind.node)));
  } else if (scope == Scope::cross) {
    std::vector<std::size_t> ranks;
    for (std::size_t node = 0; node < topology.nodes.size(); ++node)
      ranks.push_back(topology.rank_count(static_cast<int>(node)));
    for (const Round& round :
         first_rounds(node_matchings(ranks.size(), random, max_rounds, leaves, meetings), max_rounds))
      for (const Pair& nodes : round) {
        const std::size_t both =
            std::min(ranks[static_cast<std::size_t>(nodes.a)], ranks[static_cast<std::size_t>(nodes.b)]);
        count += lanes == Lanes::in_turn ? std::min<std::size_t>(both, 1) : both;
      }
  }
  return count;
}

}  // namespace assay::p2p
