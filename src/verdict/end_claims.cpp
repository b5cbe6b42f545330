// SPDX-License-Identifier: Apache-2.0
#include "verdict/end_claims.hpp"

#include <boost/container/flat_set.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "measure/statistics.hpp"
#include "verdict/constants.hpp"

namespace assay::verdict::shared_end {
namespace {

/// Share of its links across that is slow at each node of a slow switch: more than a healthy node has where
/// half of its partners are slow, less than the switch as a whole, from which single nodes deviate.
constexpr double every_node_share = 0.6;

/// What a part sends or receives.
struct EndTraffic {
  std::vector<Link*> links;
  // Filled again for every claim, of 53,000 links where all pairs of 232 nodes met: no node of a tree for
  // each.
  using Parts = boost::container::flat_set<std::int32_t>;
  Parts partners, met;  ///< met: also those of links that are explained already
  std::size_t slow = 0;

  void add(Link& link, std::int32_t partner) {
    if (!link.counts) return;
    links.push_back(&link);
    partners.insert(partner);
    met.insert(partner);
    slow += link.below != nullptr ? 1 : 0;
  }
  bool mostly_slow() const {
    return static_cast<double>(slow) >= constants::shared_end_share * static_cast<double>(links.size());
  }
  bool enough() const { return partners.size() >= constants::shared_end_partners; }
  bool bad() const { return enough() && mostly_slow(); }
};

/// Median deficit of the links beyond the bound.
double depth_of(const EndClaim& c) {
  std::vector<double> deficits;
  for (const auto* l : c.links)
    if (l->below != nullptr)
      deficits.push_back(deficit_of(l->below->value, l->below->reference, l->below->higher_is_better));
  return deficits.empty() ? 0 : median(deficits);
}

/// A switch, and whether by what it sends (else: receives).
using SwitchWay = std::pair<std::int32_t, bool>;

class Ends {
 public:
  /// `cleared`: not to be claimed.
  Ends(const Judgement& j, const network::Places& places, std::vector<Link>& links,
       const std::set<SwitchWay>& cleared)
      : j_(j), places_(places), links_(links), cleared_(cleared) {
    for (const auto& l : links_)
      for (const auto end : {l.row->source, l.row->destination}) {
        const auto node = j_.entities.node(end);
        ends_of_node_[node].insert(end);
        nodes_of_switch_[places_.switch_of(end)].insert(node);
        if (l.below == nullptr && l.counts) good_.insert(node);
      }
  }

  std::vector<EndClaim> claims() {
    std::vector<EndClaim> all;
    for (const Level level : {Level::leaf, Level::path, Level::node, Level::end})
      while (all.size() < constants::shared_end_most) {
        auto claim = level == Level::path ? worst_path(Ways::both) : worst(level);
        if (level == Level::leaf)
          if (auto all_paths = all_across()) claim = std::move(all_paths);
        if (!claim && level == Level::path) claim = worst_path(Ways::one);
        if (!claim) break;
        for (auto* link : claim->links) link->part = claim->part;
        all.push_back(std::move(*claim));
      }
    std::size_t others = 0, good = 0;
    for (const auto& l : links_) {
      if (!l.counts || std::any_of(all.begin(), all.end(), [&](const EndClaim& c) { return touches(l, c); }))
        continue;
      ++others;
      good += l.below == nullptr ? 1 : 0;
    }
    // Where the rest is no better the faulty end cannot be told apart. Without a rest, as where a limit is
    // that of one node, all links have that end.
    if (others > 0 ? 2 * good <= others : all.size() > 1) return {};
    // A part that is named for one direction explains what is slow the other way, too: its partner has no
    // finding of its own.
    for (auto& l : links_)
      for (const auto& c : all)
        if (l.part < 0 && touches(l, c)) l.part = c.part;
    return all;
  }

  /// -1: the link says nothing about parts of this level.
  std::int32_t part_of(std::int32_t end, Level level) const {
    if (level <= Level::path) return places_.switch_of(end);
    return level == Level::node ? j_.entities.node(end) : end;
  }

 private:
  bool touches(const Link& l, const EndClaim& c) const {
    const auto from = part_of(l.row->source, c.level), to = part_of(l.row->destination, c.level);
    if (c.level == Level::across) return from != to && c.switches.contains(from) && c.switches.contains(to);
    if (c.level == Level::path)
      return (from == c.part && to == c.other) || (c.in && from == c.other && to == c.part);
    return from != to && (from == c.part || to == c.part);
  }

  /// Where all paths between what is left of the switches are slow alike, each but one may be at fault, and
  /// no link says which is not.
  std::optional<EndClaim> all_across() {
    std::map<std::pair<std::int32_t, std::int32_t>, EndTraffic> paths;
    std::map<std::int32_t, EndTraffic> by_end;
    EndClaim c;
    c.out = c.in = true;
    c.level = Level::across;
    for (auto& l : links_) {
      const auto from = part_of(l.row->source, Level::across),
                 to = part_of(l.row->destination, Level::across);
      if (l.part >= 0 || from < 0 || to < 0 || from == to) continue;
      paths[std::minmax(from, to)].add(l, to);
      for (const auto end : {l.row->source, l.row->destination}) by_end[end].add(l, -1);
      c.switches.insert({from, to});
      c.links.push_back(&l);
    }
    const std::size_t n = c.switches.size();
    if (n < 3 || paths.size() < n * (n - 1) / 2) return std::nullopt;
    // Else the fault is that of nodes.
    if (std::any_of(by_end.begin(), by_end.end(), [](const auto& end) { return !end.second.mostly_slow(); }))
      return std::nullopt;
    double least = 1, most = 0;
    for (const auto& [path, traffic] : paths) {
      if (!traffic.mostly_slow() || slow_below(path.first) || slow_below(path.second)) return std::nullopt;
      const double depth = depth_of({-1, -1, traffic.links, {}, true, true, Level::path});
      least = std::min(least, depth);
      most = std::max(most, depth);
    }
    if (1 - most < (1 - constants::delta_nic) * (1 - least)) return std::nullopt;
    c.part = *c.switches.begin();
    return c;
  }

  enum class Ways { both, one };
  /// Where all that two switches carry between them is slow, either may be at fault, or what joins them.
  /// `one`: by what the one sends to the other.
  std::optional<EndClaim> worst_path(Ways ways) {
    std::map<std::pair<std::int32_t, std::int32_t>, EndClaim> paths;
    std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, EndTraffic> by_end;  // path, end
    for (auto& l : links_) {
      const auto from = part_of(l.row->source, Level::path), to = part_of(l.row->destination, Level::path);
      if (l.part >= 0 || from < 0 || to < 0 || from == to) continue;
      if (slow_below(from) || slow_below(to)) continue;  // its nodes are at fault
      const bool turn = ways == Ways::both && to < from;
      const auto low = turn ? to : from, high = turn ? from : to;
      auto& c = paths[{low, high}];
      c.part = low;
      c.other = high;
      c.links.push_back(&l);
      for (const auto& [end, partner] :
           {std::pair(l.row->source, l.row->destination), std::pair(l.row->destination, l.row->source)})
        by_end[{low, high, end}].add(l, partner);
    }
    // Each end with enough partners must show it, and two of each switch, or the fault is that of a node.
    std::map<std::pair<std::int32_t, std::int32_t>, std::map<std::int32_t, std::size_t>> shown;
    for (const auto& [key, traffic] : by_end) {
      const auto& [low, high, end] = key;
      if (!traffic.enough()) continue;
      if (!traffic.mostly_slow()) paths.erase({low, high});
      ++shown[{low, high}][part_of(end, Level::path)];
    }
    std::erase_if(paths, [&](const auto& path) {
      const auto& [low, high] = path.first;
      return shown[path.first][low] < 2 || shown[path.first][high] < 2 ||
             !slow_between(path.second.links, false);
    });
    std::optional<EndClaim> most;
    for (auto& [key, c] : paths)
      if (!most || c.links.size() > most->links.size()) most = std::move(c);
    if (most) {
      most->out = true;
      most->in = ways == Ways::both;
      most->level = Level::path;
    }
    return most;
  }

  std::optional<EndClaim> worst(Level level) {
    std::map<std::int32_t, std::pair<EndTraffic, EndTraffic>> parts;  // sent, received
    for (auto& l : links_) {
      const auto from = part_of(l.row->source, level), to = part_of(l.row->destination, level);
      if (from < 0 || to < 0 || from == to) continue;  // what stays inside says nothing
      if (l.part >= 0) {
        parts[from].first.met.insert(to);
        parts[to].second.met.insert(from);
      } else {
        parts[from].first.add(l, to);
        parts[to].second.add(l, from);
      }
    }
    if (parts.size() < 3) return std::nullopt;
    std::optional<EndClaim> best;
    std::pair<std::size_t, double> most{0, 0.0};
    // Of two parts with slow links between them only the one whose partner is as it should be with others.
    const auto alone = [&](const EndTraffic& t, bool sent) {
      return !t.links.empty() && t.mostly_slow() &&
             std::none_of(t.partners.begin(), t.partners.end(), [&](std::int32_t partner) {
               const auto& of = parts.at(partner);
               return (sent ? of.second : of.first).mostly_slow();
             });
    };
    for (auto& [part, traffic] : parts) {
      auto& [sent, received] = traffic;
      const bool out = alone(sent, true), in = alone(received, false);
      // Of a node or its NIC traffic may slow the one link that is left, hardly both ways.
      const bool enough =
          level == Level::leaf || (out && in && sent.met.size() >= constants::shared_end_partners);
      EndClaim c{part, -1, {}, {}, sent.bad() || (out && enough), received.bad() || (in && enough), level};
      if (level == Level::leaf) {
        c.out = c.out && !cleared_.contains({part, true});
        c.in = c.in && !cleared_.contains({part, false});
      }
      if (level == Level::leaf && (c.out || c.in) && !every_node(part, c.out, c.in)) continue;
      if (level == Level::node && (c.out || c.in) && !every_end(part, sent, received, c)) continue;
      std::size_t slow = 0;
      for (const auto& [bad, t] : {std::pair(c.out, &sent), std::pair(c.in, &received)}) {
        if (!bad) continue;
        c.links.insert(c.links.end(), t->links.begin(), t->links.end());
        slow += t->slow;
      }
      // Of parts with as many slow links each the one whose links are the slowest.
      const std::pair worse{slow, depth_of(c)};
      if (worse <= most) continue;
      most = worse;
      best = std::move(c);
    }
    return best;
  }

  /// A switch of one node is not told from it. A switch is at fault only if each of its nodes is slow across
  /// it, the way that it is, and what stays below it is not: between nodes that are not slow themselves,
  /// where there are such.
  bool every_node(std::int32_t leaf, bool out, bool in) {
    if (nodes_of_switch_.at(leaf).size() < 2) return false;
    if (slow_below(leaf)) return false;
    std::map<std::int32_t, EndTraffic> by_node;
    for (auto& l : links_) {
      const bool from = places_.switch_of(l.row->source) == leaf,
                 to = places_.switch_of(l.row->destination) == leaf;
      if (from == to || (from ? !out : !in)) continue;
      by_node[j_.entities.node(from ? l.row->source : l.row->destination)].add(
          l, from ? l.row->destination : l.row->source);
    }
    return std::all_of(by_node.begin(), by_node.end(), [](const auto& node) {
      return !node.second.enough() || static_cast<double>(node.second.slow) >=
                                          every_node_share * static_cast<double>(node.second.links.size());
    });
  }

  bool slow_below(std::int32_t leaf) {
    const auto [known, added] = slow_below_.emplace(leaf, false);
    if (added) {
      std::vector<Link*> links;
      for (auto& l : links_)
        if (places_.switch_of(l.row->source) == leaf && places_.switch_of(l.row->destination) == leaf)
          links.push_back(&l);
      known->second = slow_between(links, true);
    }
    return known->second;
  }

  /// By the links between nodes that have a link as it should be, where there are such; `else_nodes` where
  /// each link has an end without one, which may be why.
  bool slow_between(const std::vector<Link*>& links, bool else_nodes) const {
    EndTraffic all, between_good;
    bool nodes = false;
    for (auto* l : links) {
      const bool from = good_.contains(j_.entities.node(l->row->source)),
                 to = good_.contains(j_.entities.node(l->row->destination));
      all.add(*l, -1);
      if (from && to) between_good.add(*l, -1);
      nodes = nodes || from != to;
    }
    if (!between_good.links.empty()) return between_good.mostly_slow();
    return !links.empty() && all.mostly_slow() && (!nodes || else_nodes);
  }

  /// A node with several NICs or devices is at fault only if each of them is; a NIC that was measured by
  /// itself is not its node.
  bool every_end(std::int32_t node, const EndTraffic& sent, const EndTraffic& received,
                 const EndClaim& c) const {
    const auto& ends = ends_of_node_.at(node);
    if (ends.size() == 1 && j_.entities.kind(*ends.begin()) == "nic") return false;
    std::map<std::int32_t, std::pair<std::size_t, std::size_t>> by_end;  // slow, all
    const auto count = [&](const EndTraffic& t, bool sends) {
      for (const auto* l : t.links) {
        auto& [slow, all] = by_end[sends ? l->row->source : l->row->destination];
        slow += l->below != nullptr ? 1 : 0;
        ++all;
      }
    };
    if (c.out) count(sent, true);
    if (c.in) count(received, false);
    return std::all_of(ends.begin(), ends.end(), [&](std::int32_t end) {
      const auto it = by_end.find(end);
      return it != by_end.end() && static_cast<double>(it->second.first) >=
                                       constants::shared_end_share * static_cast<double>(it->second.second);
    });
  }

  const Judgement& j_;
  const network::Places& places_;
  std::vector<Link>& links_;
  const std::set<SwitchWay>& cleared_;
  std::map<std::int32_t, std::set<std::int32_t>> ends_of_node_, nodes_of_switch_;
  std::set<std::int32_t> good_;              ///< nodes with a link as it should be
  std::map<std::int32_t, bool> slow_below_;  ///< of a switch, as it was asked for
};

/// A switch whose slow links are all those of other switches that are as slow: what three of four switches
/// send is all that the fourth receives.
std::optional<SwitchWay> explained_by_others(const network::Places& places,
                                             const std::vector<EndClaim>& claims) {
  const auto covers = [&](const EndClaim& c, const Link& l, double depth) {
    return c.level == Level::leaf && 1 - depth_of(c) <= (1 - depth) * (1 + constants::delta_nic) &&
           ((c.out && places.switch_of(l.row->source) == c.part) ||
            (c.in && places.switch_of(l.row->destination) == c.part));
  };
  for (const auto& c : claims) {
    if (c.level != Level::leaf || c.out == c.in) continue;
    const double depth = depth_of(c);
    const bool spare = std::all_of(c.links.begin(), c.links.end(), [&](const Link* l) {
      return l->below == nullptr || std::any_of(claims.begin(), claims.end(), [&](const EndClaim& other) {
               return &other != &c && covers(other, *l, depth);
             });
    });
    if (spare) return SwitchWay{c.part, c.out};
  }
  return std::nullopt;
}

}  // namespace

std::vector<EndClaim> claims_of(const Judgement& j, const network::Places& places, std::vector<Link>& links) {
  std::set<SwitchWay> cleared;
  for (;;) {
    auto claims = Ends(j, places, links, cleared).claims();
    const auto spare = explained_by_others(places, claims);
    if (!spare || !cleared.insert(*spare).second) return claims;
    for (auto& l : links) l.part = -1;
  }
}

}  // namespace assay::verdict::shared_end
