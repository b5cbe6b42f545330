// SPDX-License-Identifier: Apache-2.0
// Few parts have no spread to judge by. What is left is the pattern: one part whose pairs are all slow, or
// one slow pair.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include "measure/statistics.hpp"
#include "verdict/constants.hpp"
#include "verdict/network_constants.hpp"
#include "verdict/network_levels.hpp"
#include "verdict/network_paths.hpp"

namespace assay::verdict::network {
namespace {

/// Of fewer switches none stands out: what crosses one crosses the other.
constexpr std::size_t least_leaves = 3;
/// Of two servers of storage, or two clients, either may be as it should be.
constexpr std::size_t least_alike = 3;

/// Noise leaves some pairs of a part that is just slow enough a little above: those of the part, and their
/// median.
const double hub_pair = -std::log1p(-constants::peers_note_deficit),
             hub_median = -std::log1p(-constants::hub_deficit);

/// One direction of a pair.
struct Directed {
  std::size_t pair = 0;
  int from = 0, to = 0;  ///< ends
  double deficit = 0;
  bool slow = false;  ///< in its median and even in its best sample
  bool low = false;   ///< enough beside all others of a part: less slow, and on shared cores its median only
  bool explained = false;
};

std::vector<Directed> directed_links(const LinkSet& set, double& reference) {
  std::vector<double> all;
  for (const auto& p : set.pairs) {
    if (!std::isnan(p.ab)) all.push_back(p.ab);
    if (!std::isnan(p.ba)) all.push_back(p.ba);
  }
  reference = upper(all);
  std::vector<Directed> links;
  for (std::size_t i = 0; i < set.pairs.size(); ++i) {
    const auto& p = set.pairs[i];
    const bool shared = set.ends[at(p.a)].shared || set.ends[at(p.b)].shared;
    const double least =
        -std::log1p(-(shared ? constants::peers_shared_deficit : constants::peers_small_deficit));
    const auto add = [&](int from, int to, double y, double best) {
      if (std::isnan(y)) return;
      // A neighbour on the machine slows some samples, a bad part all of them. Ranks that take turns on a
      // core have a best sample whenever the others sleep; that all pairs of one of them are low together is
      // what tells there.
      const bool slow = reference - y >= least && reference - best >= least;
      const double beside = shared ? least : hub_pair;
      const bool low = reference - y >= beside && (shared || reference - best >= beside);
      links.push_back({i, from, to, reference - y, slow, low, false});
    };
    add(p.a, p.b, p.ab, p.best_ab);
    add(p.b, p.a, p.ba, p.best_ba);
  }
  return links;
}

struct LinkCounts {
  std::size_t out = 0, in = 0, slow_out = 0, slow_in = 0;
  std::set<int> partners;
  std::set<std::size_t> pairs;
  std::vector<double> deficits;
};

/// Names the parts all of whose pairs are slow, if hardly a pair among the others is.
class Hubs {
 public:
  Hubs(const LinkSet& set, std::vector<Directed>& links, PartKind place)
      : set_(set), links_(links), place_(place) {}

  std::vector<SlowPlace> named() {
    const bool whole_node = place_ == PartKind::node && set_.inside;
    std::map<int, LinkCounts> parts;
    for (const auto& l : links_) {
      if (l.explained || !counts(l)) continue;
      const int from = part_of(l.from), to = part_of(l.to);
      add(parts[from], true, l, to);
      if (!whole_node) add(parts[to], false, l, from);
    }
    const auto views = place_ == PartKind::leaf ? leaf_views(set_) : std::vector<LeafView>{};
    std::vector<SlowPlace> found;
    for (auto& [index, part] : parts) {
      SlowPlace s;
      s.place = place_;
      s.index = index;
      s.p_adjusted = std::numeric_limits<double>::quiet_NaN();
      s.controls = parts.size() - 1;
      const bool out = part.out > 0 && part.slow_out == part.out, in = part.in > 0 && part.slow_in == part.in;
      if (!whole_node && part.partners.size() < 2) continue;
      // A switch with one node is not told from it; where what stays below it is slow its nodes are at fault.
      if (place_ == PartKind::leaf && (!views[at(index)].several() || slow_below(index))) continue;
      if (place_ == PartKind::end && set_.ends_like(set_.ends[at(index)]) < least_alike) continue;
      if (!out && !in) continue;
      s.samples = samples_of(part);
      s.few = s.samples < constants::peers_small_samples;
      s.strong = !s.few;
      s.way = (out && in) || part.out == 0 || part.in == 0 ? Way::both : out ? Way::out : Way::in;
      s.deficit = median(part.deficits);
      if (s.deficit < hub_median) continue;
      found.push_back(s);
    }
    // Two parts must be left over that agree with each other; half of them slow is another story.
    if (found.empty() || parts.size() < found.size() + 2 || 2 * found.size() >= parts.size()) return {};
    if (others_slow(found)) return {};
    explain(found);
    return found;
  }

 private:
  int part_of(int end) const {
    const End& e = set_.ends[at(end)];
    return place_ == PartKind::leaf ? e.leaf : place_ == PartKind::node ? e.node : end;
  }
  bool slow_below(int leaf) const {
    std::size_t slow = 0, all = 0;
    for (const auto& l : links_) {
      if (part_of(l.from) != leaf || part_of(l.to) != leaf) continue;
      ++all;
      slow += l.low ? 1U : 0U;
    }
    return all > 0 && 2 * slow > all;
  }
  /// What stays below a switch, or is on none that is known, says nothing about switches.
  bool counts(const Directed& l) const {
    if (place_ != PartKind::leaf) return true;
    return part_of(l.from) >= 0 && part_of(l.to) >= 0 && part_of(l.from) != part_of(l.to);
  }

  static void add(LinkCounts& part, bool sends, const Directed& l, int partner) {
    (sends ? part.out : part.in) += 1;
    (sends ? part.slow_out : part.slow_in) += l.low ? 1U : 0U;
    if (l.low) part.deficits.push_back(l.deficit);
    part.partners.insert(partner);
    part.pairs.insert(l.pair);
  }
  int samples_of(const LinkCounts& part) const {
    int n = 0;
    for (const auto pair : part.pairs) n += set_.pairs[pair].samples;
    return n;
  }
  bool touches(const Directed& l, const SlowPlace& s) const {
    if (!counts(l)) return false;
    return (s.way != Way::in && part_of(l.from) == s.index) ||
           (s.way != Way::out && part_of(l.to) == s.index);
  }
  /// Whether more than single pairs among the others are slow, too. Beside parts that are slow by far, noise
  /// of a few samples is not slow: what counts has half of their deficit (of the logarithm).
  bool others_slow(const std::vector<SlowPlace>& found) const {
    double least = std::numeric_limits<double>::infinity();
    for (const auto& s : found) least = std::min(least, s.deficit / 2);
    std::map<std::size_t, bool> pairs;  // whether they are slow, of those that touch none of the parts
    for (const Directed& l : links_) {
      if (l.explained ||
          std::any_of(found.begin(), found.end(), [&](const SlowPlace& s) { return touches(l, s); }))
        continue;
      bool& slow = pairs[l.pair];
      slow = slow || (l.low && l.deficit >= least);
    }
    const auto slow = std::count_if(pairs.begin(), pairs.end(), [](const auto& p) { return p.second; });
    return static_cast<double>(slow) > constants::network_single_pairs * static_cast<double>(pairs.size());
  }
  void explain(const std::vector<SlowPlace>& found) {
    for (auto& l : links_)
      for (const auto& s : found) l.explained = l.explained || (!s.few && touches(l, s));
  }

  const LinkSet& set_;
  std::vector<Directed>& links_;
  PartKind place_;
};

/// Pairs that are a warning without a retest. Of many: which have many times the deficit of the third worst,
/// which is what chance makes of this network. Of fewer: which are beyond the spread of the others; of very
/// few, all.
std::set<std::size_t> alone_among(const LinkSet& set, const std::vector<Directed>& links) {
  std::map<std::size_t, double> worst;
  for (const auto& l : links)
    if (!l.explained) worst[l.pair] = std::max(worst[l.pair], l.deficit);
  std::set<std::size_t> alone;
  if (set.pairs.size() < constants::network_pair_population &&
      worst.size() >= constants::network_deletion_population) {
    std::vector<std::size_t> pairs;
    std::vector<double> rates;
    for (const auto& [pair, deficit] : worst) {
      pairs.push_back(pair);
      rates.push_back(-deficit);
    }
    for (const auto& low : low_outliers(rates, constants::network_alpha_warn)) alone.insert(pairs[low.index]);
    return alone;
  }
  double least = 0;
  if (set.pairs.size() >= constants::network_pair_population) {
    std::vector<double> deficits(set.pairs.size(), 0.0);
    for (const auto& [pair, deficit] : worst) deficits[pair] = deficit;
    std::nth_element(deficits.begin(), deficits.begin() + 2, deficits.end(), std::greater<>());
    least = constants::network_pair_alone * deficits[2];
  }
  for (const auto& [pair, deficit] : worst)
    if (deficit >= least) alone.insert(pair);
  return alone;
}

/// Slow pairs that no part explains.
std::vector<SlowPlace> lone_pairs(const LinkSet& set, const std::vector<Directed>& links) {
  std::map<std::size_t, SlowPlace> slow;
  for (const auto& l : links) {
    if (!l.slow || l.explained) continue;
    auto [it, fresh] = slow.try_emplace(l.pair);
    SlowPlace& s = it->second;
    const bool forth = l.from == set.pairs[l.pair].a;
    s.way = fresh ? (forth ? Way::out : Way::in) : Way::both;
    s.place = PartKind::pair;
    s.index = static_cast<int>(l.pair);
    s.deficit = std::max(s.deficit, l.deficit);
    s.p_adjusted = std::numeric_limits<double>::quiet_NaN();
    s.controls = set.pairs.size() - 1;
  }
  // A link that has next to nothing left ends few samples in its time: enough to measure it again.
  static const double nearly_all = -std::log1p(-constants::peers_shared_most);
  const auto alone = alone_among(set, links);
  std::vector<SlowPlace> found;
  for (auto& [pair, s] : slow) {
    s.samples = set.pairs[pair].samples;
    const bool enough = s.samples >= constants::peers_small_samples;
    s.strong = enough && alone.contains(pair);
    s.few = !enough && s.deficit < nearly_all;
    found.push_back(s);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.deficit > b.deficit; });
  found.resize(std::min(found.size(), max_pair_suspects));
  return found;
}

}  // namespace

std::vector<SlowPlace> small_suspects(const LinkSet& set) {
  std::vector<SlowPlace> found;
  double reference = 0;
  auto links = directed_links(set, reference);
  const auto join = [&](const std::vector<SlowPlace>& more) {
    found.insert(found.end(), more.begin(), more.end());
  };
  if (!set.inside && set.leaves.size() >= least_leaves) join(Hubs(set, links, PartKind::leaf).named());
  if (set.node_rows.size() < set.ends.size()) join(Hubs(set, links, PartKind::node).named());
  join(Hubs(set, links, PartKind::end).named());
  join(lone_pairs(set, links));
  for (auto& s : found) s.reference = reference;
  return found;
}

}  // namespace assay::verdict::network
