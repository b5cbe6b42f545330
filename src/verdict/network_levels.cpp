// SPDX-License-Identifier: Apache-2.0
#include "verdict/network_levels.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "measure/robust.hpp"
#include "measure/statistics.hpp"
#include "verdict/constants.hpp"
#include "verdict/network_constants.hpp"
#include "verdict/network_paths.hpp"
#include "verdict/population.hpp"

namespace assay::verdict::network {
namespace {

using results::not_taken;
constexpr std::array ways = {Way::both, Way::out, Way::in};
/// Of fewer groups the deletion t peels less than half, or is not known at all.
constexpr std::size_t few_groups = 8;

/// One population of parts, scored three ways.
struct Population {
  std::vector<int> index;  ///< of the part
  std::array<std::vector<double>, 3> scores;
  /// Of few groups: members, and how these deviate from the score of their group; empty otherwise.
  std::vector<std::size_t> size;
  std::array<double, 3> within{};
};

/// Few groups, of which some may be slow, have no spread of their own: the error of a score follows from the
/// members' spread.
/// Healthy ones may differ by more than that, so only a deficit of a fault counts.
std::vector<Low> low_of_few(const Population& p, std::size_t way) {
  const std::vector<double>& scores = p.scores[way];
  const double least = -std::log1p(-constants::network_fail);
  double members = 0;
  for (const std::size_t n : p.size) members += static_cast<double>(n);
  const double degrees = members - static_cast<double>(scores.size());
  std::vector<Low> found;
  for (std::size_t i = 0; i < scores.size() && degrees >= 2; ++i) {
    std::vector<double> others = scores;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    const double deficit = median(others) - scores[i];
    const double error =
        normal_median_error * std::max(p.within[way], constants::network_spread_floor) *
        std::sqrt(1 / static_cast<double>(p.size[i]) + 1 / (members - static_cast<double>(p.size[i])));
    if (deficit >= least)
      found.push_back({i, deficit, t_below(-deficit / error, degrees) * static_cast<double>(scores.size())});
  }
  // Where half of them are low nobody knows which half is.
  return 2 * found.size() < scores.size() ? found : std::vector<Low>{};
}

/// A single direction is named only when the other one is not slow.
Way way_of(const Population& p, std::size_t i, const std::array<double, 3>& centre) {
  const double out = centre[1] - p.scores[1][i], in = centre[2] - p.scores[2][i];
  if (std::isnan(out) || std::isnan(in)) return Way::both;
  const double larger = std::max(out, in), smaller = std::min(out, in);
  if (smaller > 0.4 * larger) return Way::both;
  return out > in ? Way::out : Way::in;
}

/// Outliers of a population in any of the three ways, once each, worst first.
std::vector<SlowPlace> outliers(const Population& p, PartKind place, double gate, double warn,
                                const Options& options, std::size_t levels) {
  std::vector<SlowPlace> found;
  std::array<double, 3> centre{not_taken, not_taken, not_taken};
  const double share =
      1.0 / static_cast<double>(ways.size() * levels * std::max<std::size_t>(1, options.sets));
  std::vector<double> best(p.index.size(), 2.0);
  for (std::size_t w = 0; w < ways.size(); ++w) {
    std::vector<double> clean;
    for (const double s : p.scores[w])
      if (!std::isnan(s)) clean.push_back(s);
    if (clean.size() < p.index.size() || clean.empty()) continue;  // a way that not all were measured in
    centre[w] = median(clean);
    // Suspects are selected liberally, and the retest decides; the adjusted p counts every question
    // asked.
    auto lows = low_outliers(p.scores[w], options.alpha_screen);
    if (!p.size.empty())
      for (const auto& low : low_of_few(p, w)) lows.push_back(low);
    for (const auto& low : lows)
      if (low.deficit >= gate) best[low.index] = std::min(best[low.index], low.p_adjusted / share);
  }
  for (std::size_t i = 0; i < p.index.size(); ++i) {
    if (best[i] > 1) continue;
    SlowPlace s;
    s.place = place;
    s.index = p.index[i];
    s.way = way_of(p, i, centre);
    const auto w = static_cast<std::size_t>(s.way);
    s.deficit = centre[w] - p.scores[w][i];
    s.reference = centre[w];
    s.p_adjusted = std::min(1.0, best[i]);
    s.strong = s.p_adjusted <= options.alpha_warn && s.deficit >= warn;
    s.controls = p.index.size() - 1;
    found.push_back(s);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.deficit > b.deficit; });
  return found;
}

Population of_ends(const LinkSet& set, const EndScores& scores, bool servers) {
  Population p;
  for (std::size_t e = 0; e < set.ends.size(); ++e) {
    if (std::isnan(scores.both[e]) || set.ends[e].server != servers) continue;
    p.index.push_back(static_cast<int>(e));
    for (std::size_t w = 0; w < ways.size(); ++w) p.scores[w].push_back(scores.of(ways[w])[e]);
  }
  return p;
}

/// Scores of groups of ends: the upper quartile of those of their members, of which there must be `least`. A
/// slow switch slows all of its nodes, and a node all of its NICs.
template <typename Group>
Population of_groups(const LinkSet& set, const EndScores& scores, std::size_t groups, std::size_t least,
                     Group group) {
  Population p;
  std::array<std::vector<std::vector<double>>, 3> members;
  for (auto& m : members) m.resize(groups);
  for (std::size_t e = 0; e < set.ends.size(); ++e) {
    const int g = group(set.ends[e]);
    if (g < 0) continue;
    for (std::size_t w = 0; w < ways.size(); ++w) {
      const double s = scores.of(ways[w])[e];
      if (!std::isnan(s)) members[w][at(g)].push_back(s);
    }
  }
  for (std::size_t g = 0; g < groups; ++g) {
    if (members[0][g].size() < least) continue;
    p.index.push_back(static_cast<int>(g));
    for (std::size_t w = 0; w < ways.size(); ++w)
      p.scores[w].push_back(members[w][g].size() < members[0][g].size() ? not_taken : upper(members[w][g]));
  }
  if (p.index.size() >= few_groups) return p;
  for (const int g : p.index) p.size.push_back(members[0][at(g)].size());
  for (std::size_t w = 0; w < ways.size(); ++w) {
    std::vector<double> apart;
    for (std::size_t i = 0; i < p.index.size(); ++i)
      for (const double s : members[w][at(p.index[i])]) apart.push_back(s - p.scores[w][i]);
    if (!apart.empty()) p.within[w] = mad_sigma(apart);
  }
  return p;
}

/// Takes what suspects explain off all pairs they take part in.
template <typename Belongs>
void lift_all(LinkSet& set, const std::vector<SlowPlace>& suspects, bool crossing_only, Belongs part_of) {
  if (suspects.empty()) return;
  std::vector<Loss> by_part;
  for (const auto& s : suspects) {
    if (by_part.size() <= at(s.index)) by_part.resize(at(s.index) + 1);
    by_part[at(s.index)] = {s.deficit, s.way};
  }
  const auto of = [&](int end) {
    const int part = part_of(end);
    return part >= 0 && at(part) < by_part.size() ? by_part[at(part)] : Loss{};
  };
  for (auto& p : set.pairs)
    if (!crossing_only || set.crosses(p)) lift(p, of(p.a), of(p.b));
}

void append(std::vector<SlowPlace>& all, const std::vector<SlowPlace>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

/// Of a pair of which one direction is slow: that one, with its own deficit.
void tell_direction(const Pair& p, double expected, double least, SlowPlace& s) {
  if (std::isnan(p.ab) || std::isnan(p.ba)) return;
  const double out = expected - p.ab, in = expected - p.ba, worse = std::max(out, in);
  if (std::abs(out - in) < least || 2 * std::min(out, in) > worse) return;
  s.way = out > in ? Way::out : Way::in;
  s.deficit = worse;
}

/// Pairs slower than both of their ends explain. Spikes of congestion look the same, so the worst are only
/// candidates; one that stands alone far below all others is strong.
std::vector<SlowPlace> slow_pairs(const LinkSet& set, const EndScores& scores) {
  std::vector<double> residual;
  for (const auto& p : set.pairs) {
    const double ends = std::min(scores.both[at(p.a)], scores.both[at(p.b)]);
    residual.push_back(p.mean() - std::min(std::isnan(ends) ? 0.0 : ends, 0.0));
  }
  const double centre = median(residual), spread = mad_sigma(residual);
  const double least = set.least().pair;
  std::vector<std::size_t> order(residual.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const std::size_t wanted = std::min(max_pair_suspects + 3, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(wanted), order.end(),
                    [&](std::size_t a, std::size_t b) { return residual[a] < residual[b]; });
  // The deficit that the third worst has is what chance makes of this network.
  const double usual = wanted > 2 ? centre - residual[order[2]] : 0;
  std::vector<SlowPlace> found;
  for (std::size_t k = 0; k < std::min(max_pair_suspects, wanted); ++k) {
    SlowPlace s;
    s.place = PartKind::pair;
    s.index = static_cast<int>(order[k]);
    s.deficit = centre - residual[order[k]];
    if (s.deficit < std::max(least, constants::network_pair_sigma * spread)) break;
    s.p_adjusted = not_taken;
    s.strong = k < 2 && set.pairs.size() >= constants::network_pair_population &&
               s.deficit >= constants::network_pair_alone * std::max(usual, spread) && s.deficit >= 2 * least;
    s.controls = set.pairs.size() - 1;
    const auto& pair = set.pairs[order[k]];
    tell_direction(pair, centre + pair.mean() - residual[order[k]], least, s);
    found.push_back(s);
  }
  return found;
}

/// Outliers among all switches and, where two slow ones of a rail make half of all look slow, in each rail.
std::vector<SlowPlace> slow_switches(const LinkSet& set, const EndScores& across,
                                     const std::vector<LeafView>& views, const Options& options,
                                     std::size_t levels) {
  const auto those = [&](const auto& wanted) {
    const auto of = [&](const End& e) {
      return e.leaf >= 0 && views[at(e.leaf)].told_apart() && wanted(e.leaf) ? e.leaf : -1;
    };
    const auto leaves = of_groups(set, across, set.leaves.size(), 2, of);
    return outliers(leaves, PartKind::leaf, constants::network_leaf, set.least().warn, options, levels);
  };
  auto found = those([](int) { return true; });
  std::map<int, bool> fabrics;  // whether one of its switches is found
  for (const auto& view : views) fabrics[view.fabric];
  for (const auto& s : found) fabrics[views[at(s.index)].fabric] = true;
  for (const auto& [fabric, known] : fabrics) {
    if (known || fabrics.size() < 2) continue;
    append(found, those([&](int leaf) { return views[at(leaf)].fabric == fabric; }));
  }
  return found;
}

/// A node that is nearly as fast across its switch as it should be clears a switch that would be slow by far.
void keep_switches_of_slow_nodes(const LinkSet& set, const EndScores& scores,
                                 std::vector<SlowPlace>& leaves) {
  constexpr double nearly = 0.25;
  std::erase_if(leaves, [&](const SlowPlace& leaf) {
    if (leaf.deficit < log_deficit(constants::coarse_deficit)) return false;
    const auto& of = scores.of(leaf.way);
    for (std::size_t e = 0; e < set.ends.size(); ++e)
      if (set.ends[e].leaf == leaf.index && leaf.reference - of[e] < nearly * leaf.deficit) return true;
    return false;
  });
}

/// Where even the best of what stays below a switch is slow by half as much as what crosses it, its nodes are
/// at fault. By more than such links differ: noise clears no switch. The one link between two nodes is as
/// slow as the slower of them, and tells nothing.
void keep_switches_of_slow_links_below(const LinkSet& set, const std::vector<LeafView>& views,
                                       std::vector<SlowPlace>& leaves) {
  if (leaves.empty()) return;
  std::vector<std::vector<double>> below(set.leaves.size());
  for (const auto& p : set.pairs) {
    const int leaf = set.ends[at(p.a)].leaf;
    if (leaf < 0 || leaf != set.ends[at(p.b)].leaf) continue;
    for (const double rate : {p.ab, p.ba})
      if (!std::isnan(rate)) below[at(leaf)].push_back(rate);
  }
  std::vector<double> others, apart;
  for (std::size_t leaf = 0; leaf < below.size(); ++leaf) {
    if (std::ranges::any_of(leaves, [&](const auto& s) { return at(s.index) == leaf; })) continue;
    if (below[leaf].empty()) continue;
    others.push_back(std::ranges::max(below[leaf]));
    for (const double usual = median(below[leaf]); const double rate : below[leaf])
      apart.push_back(rate - usual);
  }
  if (others.empty()) return;
  const double usual = median(others), noise = 4 * std::max(mad_sigma(apart), mad_sigma(others));
  std::erase_if(leaves, [&](const SlowPlace& leaf) {
    const auto& of = below[at(leaf.index)];
    return views[at(leaf.index)].nodes.size() > 2 && !of.empty() &&
           usual - std::ranges::max(of) >= std::max(leaf.deficit / 2, noise);
  });
}

}  // namespace

std::vector<SlowPlace> localise(LinkSet set, const Options& options) {
  constexpr std::size_t levels = 4;
  const Least least = set.least();
  std::vector<SlowPlace> all;
  const auto views = leaf_views(set);
  if (set.leaves.size() >= 3) {
    const EndScores across = end_scores(set, true);
    auto found = slow_switches(set, across, views, options, levels);
    keep_switches_of_slow_nodes(set, across, found);
    keep_switches_of_slow_links_below(set, views, found);
    lift_all(set, found, true, [&](int end) { return set.ends[at(end)].leaf; });
    append(all, found);
  }
  const auto paths = slow_paths(set, views);
  shift_paths(set, paths, 1);
  // A node is slow as a whole when its best NICs are; with one each the two are the same.
  if (set.node_rows.size() < set.ends.size()) {
    const auto nodes =
        of_groups(set, end_scores(set, false), set.node_rows.size(), 1, [](const End& e) { return e.node; });
    const auto found = outliers(nodes, PartKind::node, least.node, least.warn, options, levels);
    lift_all(set, found, false, [&](int end) { return set.ends[at(end)].node; });
    append(all, found);
  }
  const EndScores scores = end_scores(set, false);
  std::vector<SlowPlace> found;
  for (const bool servers : {false, true})
    append(found,
           outliers(of_ends(set, scores, servers), PartKind::end, least.node, least.warn, options, levels));
  lift_all(set, found, false, [](int end) { return end; });
  append(all, found);
  const EndScores explained = end_scores(set, false);
  shift_paths(set, paths, -1);
  append(all, slow_pairs(set, explained));
  return all;
}

}  // namespace assay::verdict::network
