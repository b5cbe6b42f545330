// SPDX-License-Identifier: Apache-2.0
#include "verdict/network_paths.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "verdict/constants.hpp"
#include "verdict/network_constants.hpp"
#include "verdict/network_levels.hpp"
#include "verdict/population.hpp"

namespace assay::verdict::network {
namespace {

/// Paths, both ways counted, from which the upper quartile is one that no slow switch takes part in.
constexpr std::size_t least_quartile = 8;

/// What the ends send and receive, by the switch of the other end.
class Traffic {
 public:
  explicit Traffic(const LinkSet& set) : set_(set), sent_(set.ends.size()), received_(set.ends.size()) {
    const auto add = [&](int from, int to, double rate) {
      if (std::isnan(rate)) return;
      sent_[at(from)][set.ends[at(to)].leaf].push_back(rate);
      received_[at(to)][set.ends[at(from)].leaf].push_back(rate);
    };
    for (const auto& p : set.pairs) {
      add(p.a, p.b, p.ab);
      add(p.b, p.a, p.ba);
    }
  }

  /// How much slower an end is than the best below its switch, but for what crosses to switch `other`; 0
  /// where that is no gross deficit: of four links between two switches of two nodes each, a slow node of
  /// each slows three, and the path is not slow.
  double lag(int end, bool sends, int other) {
    const double own = elsewhere(end, sends, other);
    const int leaf = set_.ends[at(end)].leaf;
    const auto [known, fresh] = best_.try_emplace({leaf, sends, other}, own);
    for (std::size_t e = 0; fresh && e < set_.ends.size(); ++e)
      if (set_.ends[e].leaf == leaf)
        known->second = std::fmax(known->second, elsewhere(static_cast<int>(e), sends, other));
    const double lag = known->second - own;
    return lag > log_deficit(constants::coarse_deficit) ? lag : 0;
  }

 private:
  /// Across to third switches, or below its own where there is none: what stays below is not slowed by an
  /// uplink.
  double elsewhere(int end, bool sends, int other) {
    const auto [known, fresh] = elsewhere_.try_emplace({end, sends, other}, results::not_taken);
    if (!fresh) return known->second;
    const int own = set_.ends[at(end)].leaf;
    std::vector<double> across, below;
    for (const auto& [leaf, rates] : (sends ? sent_ : received_)[at(end)]) {
      auto& values = leaf == own ? below : across;
      if (leaf != other) values.insert(values.end(), rates.begin(), rates.end());
    }
    auto& values = across.empty() ? below : across;
    if (!values.empty()) known->second = upper(std::move(values));
    return known->second;
  }

  const LinkSet& set_;
  std::vector<std::map<int, std::vector<double>>> sent_, received_;
  std::map<std::tuple<int, bool, int>, double> elsewhere_;  // by end
  std::map<std::tuple<int, bool, int>, double> best_;       // by switch
};

void find_fabrics(std::vector<LeafView>& views) {
  for (std::size_t first = 0; first < views.size(); ++first) {
    if (views[first].fabric >= 0) continue;
    std::vector<int> joined{static_cast<int>(first)};
    views[first].fabric = joined.front();
    for (std::size_t i = 0; i < joined.size(); ++i)
      for (const int partner : views[at(joined[i])].partners) {
        if (views[at(partner)].fabric >= 0) continue;
        views[at(partner)].fabric = joined.front();
        joined.push_back(partner);
      }
    for (const int leaf : joined) views[at(leaf)].joined = joined.size();
  }
}

}  // namespace

std::vector<LeafView> leaf_views(const LinkSet& set) {
  std::vector<LeafView> views(set.leaves.size());
  for (const auto& e : set.ends)
    if (e.leaf >= 0) views[at(e.leaf)].nodes.insert(e.node);
  for (const auto& p : set.pairs) {
    if (!set.crosses(p)) continue;
    const int a = set.ends[at(p.a)].leaf, b = set.ends[at(p.b)].leaf;
    views[at(a)].partners.insert(b);
    views[at(b)].partners.insert(a);
  }
  find_fabrics(views);
  return views;
}

Paths slow_paths(const LinkSet& set, const std::vector<LeafView>& views) {
  std::map<std::pair<int, int>, std::vector<double>> rates;
  struct Crossing {
    int from, to;
    double rate;
  };
  std::vector<Crossing> crossings;
  std::vector<double> usual;
  const auto add = [&](int from, int to, double rate) {
    const int out = set.ends[at(from)].leaf, in = set.ends[at(to)].leaf;
    const LeafView &a = views[at(out)], &b = views[at(in)];
    const bool few = a.joined < constants::network_deletion_population;
    if (std::isnan(rate) || !a.several() || !b.several() || (!few && a.told_apart() && b.told_apart()))
      return;
    crossings.push_back({from, to, rate});
    usual.push_back(rate);
  };
  for (const auto& p : set.pairs) {
    if (!set.crosses(p)) continue;
    add(p.a, p.b, p.ab);
    add(p.b, p.a, p.ba);
  }
  Paths paths;
  if (crossings.empty()) return paths;
  // What a slow node takes is not the path's. No link counts as faster than is usual by that.
  const double most = upper(std::move(usual));
  Traffic traffic(set);
  for (const Crossing& c : crossings) {
    const int out = set.ends[at(c.from)].leaf, in = set.ends[at(c.to)].leaf;
    const double lag = std::max(traffic.lag(c.from, true, in), traffic.lag(c.to, false, out));
    rates[{out, in}].push_back(std::max(c.rate, std::min(c.rate + lag, most)));
  }
  std::vector<double> scores;
  for (const auto& [path, values] : rates) scores.push_back(paths[path] = upper(values));
  // One of three switches slows four of six paths.
  const double reference =
      scores.size() < least_quartile ? *std::max_element(scores.begin(), scores.end()) : upper(scores);
  for (auto& [path, score] : paths) score = reference - score;
  std::erase_if(paths, [&](const auto& path) { return path.second < set.least().warn; });
  return paths;
}

void shift_paths(LinkSet& set, const Paths& paths, double sign) {
  if (paths.empty()) return;
  const auto shift = [&](int from, int to, double& rate) {
    if (const auto it = paths.find({from, to}); it != paths.end()) rate += sign * it->second;
  };
  for (auto& p : set.pairs) {
    if (!set.crosses(p)) continue;
    const int a = set.ends[at(p.a)].leaf, b = set.ends[at(p.b)].leaf;
    shift(a, b, p.ab);
    shift(b, a, p.ba);
  }
}

}  // namespace assay::verdict::network
