// SPDX-License-Identifier: Apache-2.0
#include "suites/p2p/sweep.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/error.hpp"
#include "base/json.hpp"
#include "measure/statistics.hpp"

namespace assay::p2p {

Sweep::Sweep(const Topology& topology, const RandomStream& random, std::size_t first, std::size_t rounds)
    : topology_(topology), all_(topology.nodes.size(), random), first_(std::min(first, all_.rounds())) {
  rounds_ = std::min(rounds, all_.rounds() - first_);
}

int Sweep::partner_of(std::size_t i, int rank) const {
  const int node = topology_.ranks[static_cast<std::size_t>(rank)].node;
  const int other = all_.partner_of(first_ + i, node);
  if (other < 0) return -1;
  const std::size_t both = std::min(topology_.rank_count(node), topology_.rank_count(other));
  const auto local = static_cast<std::size_t>(topology_.ranks[static_cast<std::size_t>(rank)].local_rank);
  if (both == 0 || local != (first_ + i) % std::min(both, std::max<std::size_t>(1, first_))) return -1;
  return topology_.ranks_of(other)[local];
}

Usual usual_rate(const std::vector<Met>& met) {
  const auto usual = [&](double Met::*direction) {
    std::vector<double> rates;
    for (const Met& m : met)
      if (m.*direction > 0) rates.push_back(m.*direction);
    return rates.empty() ? 0 : median(rates);
  };
  return {usual(&Met::to), usual(&Met::back), met.size()};
}

std::vector<Usual> usual_rates(const std::vector<Usual>& of_ranks) {
  constexpr std::uint64_t enough = 8;
  std::vector<Usual> rates = of_ranks;
  for (double Usual::*direction : {&Usual::to, &Usual::from}) {
    std::vector<double> sure, all;
    for (const Usual& one : of_ranks) {
      if (one.*direction <= 0) continue;
      all.push_back(one.*direction);
      if (one.met >= enough) sure.push_back(one.*direction);
    }
    const double middle = all.empty() ? 0 : median(sure.empty() ? all : sure);
    for (Usual& one : rates)
      if (one.met < enough || one.*direction <= 0) one.*direction = middle;
  }
  return rates;
}

std::vector<Suspect> suspects_of(int rank, const std::vector<Met>& met, const std::vector<Usual>& usual) {
  std::vector<Suspect> found;
  for (const Met& m : met) {
    const double both = std::min(usual.at(static_cast<std::size_t>(rank)).to,
                                 usual.at(static_cast<std::size_t>(m.peer)).from);
    if (m.to > 0 && m.to < suspect_share * both) found.push_back({{rank, m.peer}, m.to / both});
  }
  std::sort(found.begin(), found.end(), [](const Suspect& a, const Suspect& b) { return a.share < b.share; });
  if (found.size() > suspects_of_rank) found.resize(suspects_of_rank);
  return found;
}

Schedule rounds_of(std::vector<Suspect> suspects, const Topology& topology) {
  const auto node = [&](int rank) { return topology.ranks[static_cast<std::size_t>(rank)].node; };
  for (Suspect& s : suspects)
    if (s.pair.a > s.pair.b) std::swap(s.pair.a, s.pair.b);
  std::sort(suspects.begin(), suspects.end(), [](const Suspect& a, const Suspect& b) {
    return std::tuple(a.share, a.pair.a, a.pair.b) < std::tuple(b.share, b.pair.a, b.pair.b);
  });
  Schedule rounds;
  std::vector<std::set<int>> busy;
  std::set<std::pair<int, int>> placed;  // both ends may name a pair
  for (const auto& [pair, share] : suspects) {
    if (!placed.insert({pair.a, pair.b}).second) continue;
    std::size_t r = 0;
    while (r < rounds.size() && (busy[r].contains(node(pair.a)) || busy[r].contains(node(pair.b)))) ++r;
    if (r == suspect_rounds) continue;
    if (r == rounds.size()) rounds.emplace_back(), busy.emplace_back();
    rounds[r].push_back(pair);
    busy[r].insert({node(pair.a), node(pair.b)});
  }
  return rounds;
}

void fill(Schedule& rounds, const Sweep& all, const Topology& topology) {
  if (all.rounds() == 0) return;
  const auto node = [&](int rank) {
    return static_cast<std::size_t>(topology.ranks[static_cast<std::size_t>(rank)].node);
  };
  std::set<std::pair<int, int>> suspects;
  for (const Round& round : rounds)
    for (const Pair& pair : round) suspects.insert({pair.a, pair.b});
  for (std::size_t r = 0; r < std::min(rounds.size(), all.rounds()); ++r) {
    std::vector<bool> busy(topology.nodes.size());
    for (const Pair& pair : rounds[r]) busy[node(pair.a)] = busy[node(pair.b)] = true;
    for (int rank = 0; rank < topology.size(); ++rank) {
      const int peer = all.partner_of(r, rank);
      if (peer < rank || busy[node(rank)] || busy[node(peer)] || suspects.contains({rank, peer})) continue;
      rounds[r].push_back({rank, peer});
    }
  }
}

namespace {

template <typename Read>
void read_each(const std::string& text, const Read& read) {
  try {
    for (const Json& one : Json::parse(text)) read(one);
  } catch (const Json::exception& e) {
    throw Error(ErrorKind::internal, std::string("p2p: pairs of a sweep: ") + e.what());
  }
}

}  // namespace

std::string text_of(const std::vector<Suspect>& suspects) {
  Json all = Json::array();
  for (const Suspect& s : suspects) all.push_back({s.pair.a, s.pair.b, s.share});
  return all.dump();
}

std::string text_of(const Schedule& schedule) {
  Json all = Json::array();
  for (const Round& round : schedule) {
    Json& ends = all.emplace_back(Json::array());
    for (const Pair& pair : round) ends.push_back({pair.a, pair.b});
  }
  return all.dump();
}

std::vector<Suspect> suspects_from(const std::string& text) {
  std::vector<Suspect> suspects;
  read_each(text, [&](const Json& one) {
    suspects.push_back({{one.at(0).get<int>(), one.at(1).get<int>()}, one.at(2).get<double>()});
  });
  return suspects;
}

Schedule schedule_from(const std::string& text) {
  Schedule schedule;
  read_each(text, [&](const Json& round) {
    schedule.emplace_back();
    for (const Json& ends : round) schedule.back().push_back({ends.at(0).get<int>(), ends.at(1).get<int>()});
  });
  return schedule;
}

}  // namespace assay::p2p
