// SPDX-License-Identifier: Apache-2.0
#include "verdict/network_paths.hpp"

#include <algorithm>
#include <cmath>

#include "verdict/network_constants.hpp"
#include "verdict/network_levels.hpp"

namespace assay::verdict::network {
namespace {

/// Paths, both ways counted, from which the upper quartile is one that no slow switch takes part in.
constexpr std::size_t least_quartile = 8;

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
  return views;
}

Paths slow_paths(const LinkSet& set, const std::vector<LeafView>& views) {
  std::map<std::pair<int, int>, std::vector<double>> rates;
  const bool few = set.leaves.size() < constants::network_deletion_population;
  const auto add = [&](int from, int to, double rate) {
    const LeafView &a = views[at(from)], &b = views[at(to)];
    if (!std::isnan(rate) && a.several() && b.several() && (few || !a.told_apart() || !b.told_apart()))
      rates[{from, to}].push_back(rate);
  };
  for (const auto& p : set.pairs) {
    if (!set.crosses(p)) continue;
    const int a = set.ends[at(p.a)].leaf, b = set.ends[at(p.b)].leaf;
    add(a, b, p.ab);
    add(b, a, p.ba);
  }
  Paths paths;
  std::vector<double> scores;
  for (const auto& [path, values] : rates) scores.push_back(paths[path] = upper(values));
  if (scores.empty()) return paths;
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
