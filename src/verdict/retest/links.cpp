// SPDX-License-Identifier: Apache-2.0
// What is measured again: suspects with the partner that made them one, then with new ones; controls beside
// them in every round. Single pairs are repeated as they are.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "base/random.hpp"
#include "verdict/network.hpp"
#include "verdict/network_claims.hpp"
#include "verdict/network_constants.hpp"
#include "verdict/retest/candidates.hpp"

namespace assay::verdict {
namespace network {
namespace {

using Pairing = std::pair<int, int>;  ///< ends, the smaller first
/// A part is at fault by two partners at least.
constexpr std::size_t least_across = 2;

Pairing pairing(int a, int b) { return {std::min(a, b), std::max(a, b)}; }

/// Draws rounds of disjoint pairs for one set.
class Drawer {
 public:
  Drawer(const Screened& screened, std::uint64_t seed)
      : set_(screened.set),
        random_(RandomStream(seed, "confirm/links").child(set_.series->full())),
        to_servers_(set_.to_servers()) {
    suspect_.assign(set_.ends.size(), false);
    const std::vector<bool> apart = no_controls(screened);
    for (std::size_t i = 0; i < apart.size(); ++i) {
      const SlowPlace& s = screened.suspects[i];
      if (s.place == PartKind::pair || !apart[i]) continue;
      for (const int end : ends_of(set_, s)) suspect_[at(end)] = true;
    }
    for (const auto& p : set_.pairs) met_.insert(pairing(p.a, p.b));
    lane_.assign(set_.ends.size(), 0);
    std::map<int, std::vector<int>> by_node;
    for (std::size_t e = 0; e < set_.ends.size(); ++e)
      by_node[set_.ends[e].node].push_back(static_cast<int>(e));
    for (auto& [node, ends] : by_node) {
      std::sort(ends.begin(), ends.end(),
                [&](int a, int b) { return set_.ends[at(a)].row < set_.ends[at(b)].row; });
      for (std::size_t k = 0; k < ends.size(); ++k) lane_[at(ends[k])] = static_cast<int>(k);
    }
    for (std::size_t e = 0; e < set_.ends.size(); ++e)
      if (set_.ends[e].leaf >= 0) sound_of_lane_[lane_[e]][set_.ends[e].leaf] += suspect_[e] ? 0 : 1;
  }

  /// Unit suspects: their ends, at most `network_leaf_ends` of a leaf.
  void candidates(const std::vector<const SlowPlace*>& suspects) {
    std::set<int> taken;
    for (const auto* s : suspects) {
      auto ends = ends_of(set_, *s);
      if (s->place == PartKind::leaf && ends.size() > constants::network_leaf_ends) {
        std::vector<int> drawn;
        for (const auto i : random_.child("leaf" + std::to_string(s->index)).permutation(ends.size()))
          if (drawn.size() < constants::network_leaf_ends) drawn.push_back(ends[i]);
        ends = drawn;
      }
      for (const int end : ends)
        if (taken.insert(end).second) candidates_.push_back(end);
    }
  }

  void draw_units(Retest& retest) {
    choose_controls();
    for (int r = 0; r <= constants::network_retest_partners; ++r) {
      busy_.assign(set_.ends.size(), false);
      std::vector<Pairing> round;
      for (const int end : candidates_) {
        if (busy_[at(end)]) continue;
        const int partner = r == 0 ? worst_partner(end) : next_partner(end, r);
        if (partner >= 0) take(round, end, partner);
      }
      pair_controls(round, r);
      append(retest, round);
    }
    finish(retest);
  }

  void draw_pairs(Retest& retest, const std::vector<const SlowPlace*>& suspects) {
    std::vector<std::vector<Pairing>> batches(constants::network_pair_batches);
    // As in the screening: where only one end of a node was busy at a time, it had the NICs to itself.
    std::vector<std::set<int>> busy(batches.size());
    const bool by_node = one_end_of_a_node();
    const auto place = [&](int end) { return by_node ? set_.ends[at(end)].node : end; };
    const auto put = [&](const Pair& p, std::size_t b) {
      if (busy[b].contains(place(p.a)) || busy[b].contains(place(p.b))) return false;
      busy[b].insert({place(p.a), place(p.b)});
      batches[b].push_back(pairing(p.a, p.b));
      return true;
    };
    std::set<Pairing> wanted;
    for (const auto* s : suspects) {
      const auto& p = set_.pairs[at(s->index)];
      if (suspect_[at(p.a)] || suspect_[at(p.b)] || !wanted.insert(pairing(p.a, p.b)).second) continue;
      for (std::size_t b = 0; b < batches.size() && !put(p, b);) ++b;
    }
    for (std::size_t b = 0; b < batches.size(); ++b) {
      if (batches[b].empty()) continue;
      for (const auto& m : batches[b]) candidates_.insert(candidates_.end(), {m.first, m.second});
      std::size_t controls = 0;
      for (const auto i : random_.child("pairs" + std::to_string(b)).permutation(set_.pairs.size())) {
        const auto& p = set_.pairs[i];
        if (controls >= wanted_controls()) break;
        if (suspect_[at(p.a)] || suspect_[at(p.b)] || wanted.contains(pairing(p.a, p.b)) || !put(p, b))
          continue;
        controls_.insert(controls_.end(), {p.a, p.b});
        ++controls;
      }
    }
    for (int repeat = 0; repeat < constants::network_pair_repeats; ++repeat)
      for (const auto& batch : batches) append(retest, batch);
    finish(retest);
  }

 private:
  /// Whether no two ends of a node were in one round of the screening.
  bool one_end_of_a_node() const {
    const results::CaseData& c = *set_.series->first;
    const results::Metric* round = c.find("round");
    if (round == nullptr || round->values.size() != c.entities()) return false;
    std::map<std::int32_t, int> node_of;
    for (const End& end : set_.ends) node_of[end.row] = end.node;
    const auto rounds = round->values.held();
    std::map<std::pair<double, int>, std::int32_t> ends;  // by round and node
    for (std::size_t i = 0; i < c.source.size(); ++i)
      for (const auto row : {c.source[i], c.destination[i]}) {
        const auto node = node_of.find(row);
        if (node == node_of.end()) continue;
        if (ends.try_emplace({rounds[i], node->second}, row).first->second != row) return false;
      }
    return true;
  }

  std::size_t wanted_controls() const {
    const std::size_t share = set_.ends.size() / 20;
    return std::clamp(share, constants::network_least_controls, constants::network_most_controls);
  }

  /// Pairs of new rounds: pairs that the series holds too, and across leaves where a lane has partners enough
  /// on others. In a rail-optimised fabric each lane has its own.
  bool compatible(int a, int b) const {
    const auto &x = set_.ends[at(a)], &y = set_.ends[at(b)];
    if (a == b) return false;
    if (set_.inside) return x.node == y.node;
    return x.node != y.node && (x.server != y.server) == to_servers_ && lane_[at(a)] == lane_[at(b)] &&
           (x.leaf < 0 || y.leaf < 0 || x.leaf != y.leaf || few_across(lane_[at(a)], x.leaf));
  }

  /// Whether fewer ends of this lane than a confirmation needs are as they should be on other leaves.
  bool few_across(int lane, int leaf) const {
    std::size_t across = 0;
    for (const auto& [other, ends] : sound_of_lane_.at(lane)) across += other == leaf ? 0 : ends;
    return across < least_across;
  }

  void choose_controls() {
    std::vector<bool> chosen(set_.ends.size(), false);
    for (const int end : candidates_) chosen[at(end)] = true;
    std::set<int> lanes, nodes;
    for (const int end : candidates_) {
      lanes.insert(lane_[at(end)]);
      nodes.insert(set_.ends[at(end)].node);
    }
    std::size_t wanted = (to_servers_ ? 4 : 2) * wanted_controls();  // half of them of the suspect's kind
    std::vector<std::size_t> order = random_.child("controls").permutation(set_.ends.size());
    // Inside nodes the devices beside a suspect come first: its partners are among them.
    if (set_.inside)
      std::stable_partition(order.begin(), order.end(),
                            [&](auto e) { return nodes.contains(set_.ends[e].node); });
    for (const auto e : order) {
      if (wanted == 0) break;
      if (suspect_[e] || chosen[e] || (!set_.inside && !lanes.contains(lane_[e]))) continue;
      controls_.push_back(static_cast<int>(e));
      --wanted;
    }
    pool_.clear();
    for (const auto e : random_.child("partners").permutation(set_.ends.size()))
      if (!suspect_[e] && !chosen[e]) pool_.push_back(static_cast<int>(e));
    is_control_.assign(set_.ends.size(), false);
    for (const int end : controls_) is_control_[at(end)] = true;
  }

  int worst_partner(int end) const {
    int partner = -1;
    double worst = 0;
    for (const auto& p : set_.pairs) {
      if (p.a != end && p.b != end) continue;
      const int other = p.a == end ? p.b : p.a;
      if (suspect_[at(other)] || busy_[at(other)] || !compatible(end, other)) continue;
      if (partner < 0 || p.mean() < worst) {
        partner = other;
        worst = p.mean();
      }
    }
    return partner;
  }

  /// A new partner if there is one, else one not met in this retest, else in every second round one again:
  /// the other rounds are for the controls. The search starts elsewhere in each round; controls are left to
  /// each other while others are there.
  int next_partner(int end, int round) const {
    const std::size_t n = pool_.size();
    const std::size_t start =
        n == 0 ? 0
               : random_.child("start").below(
                     static_cast<std::uint64_t>(end) * 64 + static_cast<std::uint64_t>(round), n);
    int best = -1, best_cost = 8;
    for (std::size_t k = 0; k < n && best_cost > 0; ++k) {
      const int other = pool_[(start + k) % n];
      const bool again = drawn_.contains(pairing(end, other));
      if (busy_[at(other)] || !compatible(end, other) || (again && round % 2 != 0)) continue;
      const int cost =
          (again ? 4 : 0) + (met_.contains(pairing(end, other)) ? 2 : 0) + (is_control_[at(other)] ? 1 : 0);
      if (cost >= best_cost) continue;
      best = other;
      best_cost = cost;
    }
    return best;
  }

  void pair_controls(std::vector<Pairing>& round, int number) {
    std::vector<int> free;
    for (const int end : controls_)
      if (!busy_[at(end)]) free.push_back(end);
    const auto order = random_.child("round" + std::to_string(number)).permutation(free.size());
    for (std::size_t i = 0; i < free.size(); ++i) {
      const int a = free[order[i]];
      if (busy_[at(a)]) continue;
      int repeated = -1;
      for (std::size_t k = i + 1; k < free.size() && !busy_[at(a)]; ++k) {
        const int b = free[order[k]];
        if (busy_[at(b)] || !compatible(a, b)) continue;
        if (drawn_.contains(pairing(a, b)))
          repeated = repeated < 0 ? b : repeated;
        else
          take(round, a, b);
      }
      if (!busy_[at(a)] && repeated >= 0) take(round, a, repeated);
    }
  }

  void take(std::vector<Pairing>& round, int a, int b) {
    busy_[at(a)] = busy_[at(b)] = true;
    drawn_.insert(pairing(a, b));
    round.push_back({a, b});
  }

  void append(Retest& retest, const std::vector<Pairing>& round) const {
    if (round.empty()) return;
    auto& links = retest.rounds.emplace_back();
    for (const auto& [a, b] : round) links.push_back({set_.ends[at(a)].row, set_.ends[at(b)].row});
  }

  void finish(Retest& retest) const {
    const auto rows = [&](const std::vector<int>& ends, const std::set<std::int32_t>& without) {
      std::set<std::int32_t> found;
      for (const int end : ends)
        if (!without.contains(set_.ends[at(end)].row)) found.insert(set_.ends[at(end)].row);
      return found;
    };
    const auto candidates = rows(candidates_, {});
    const auto controls = rows(controls_, candidates);
    retest.candidates.assign(candidates.begin(), candidates.end());
    retest.controls.assign(controls.begin(), controls.end());
    retest.samples = constants::network_retest_samples;
  }

  const LinkSet& set_;
  RandomStream random_;
  bool to_servers_;
  std::map<int, std::map<int, std::size_t>> sound_of_lane_;  // ends without a suspicion, by leaf
  std::vector<bool> suspect_, busy_, is_control_;
  std::vector<int> lane_, candidates_, controls_, pool_;
  std::set<Pairing> met_, drawn_;
};

}  // namespace
}  // namespace network

NetworkRetests network_retests(const Judgement& j) {
  using namespace network;
  const Places places(j);
  const auto screened = screen(j, places);
  const auto assigned = assign(j, screened);
  NetworkRetests out;
  std::vector<Retest>& units = out.asked;
  std::vector<Retest> pairs;
  for (std::size_t i = 0; i < screened.size(); ++i) {
    std::vector<const network::SlowPlace*> wanted_units, wanted_pairs, controls;
    if (assigned[i].empty()) continue;
    const LinkRetest retest = link_retest(j, places, screened[i]);
    for (const auto* s : assigned[i]) {
      if (const auto result = judge_retest(screened[i], retest, *s, 1); result.measured) {
        if (result.slower && s->place != PartKind::pair)
          for (const int end : ends_of(screened[i].set, *s))
            out.slow_ends.insert(screened[i].set.ends[at(end)].row);
        continue;
      }
      const bool control = !retest.apart[static_cast<std::size_t>(s - screened[i].suspects.data())];
      (s->place == PartKind::pair ? wanted_pairs : control ? controls : wanted_units).push_back(s);
    }
    // Beside other suspects they are measured as controls.
    if (wanted_units.empty()) wanted_units = std::move(controls);
    // Asked twice and still without an answer: it cannot be had.
    if (retest.cases >= 2) continue;
    int number = retest.cases;
    const Series& series = *screened[i].set.series;
    const auto next = [&] { return retest_of(series.suite, series.name, series.metric, ++number); };
    if (!wanted_units.empty() && retest.cases == 0) {
      Retest r = next();
      Drawer drawer(screened[i], j.results.info.seed);
      drawer.candidates(wanted_units);
      drawer.draw_units(r);
      if (!r.rounds.empty()) units.push_back(std::move(r));
    }
    if (wanted_pairs.empty()) continue;
    Retest r = next();
    Drawer drawer(screened[i], j.results.info.seed);
    drawer.draw_pairs(r, wanted_pairs);
    if (!r.rounds.empty()) pairs.push_back(std::move(r));
  }
  std::move(pairs.begin(), pairs.end(), std::back_inserter(units));
  return out;
}

}  // namespace assay::verdict
