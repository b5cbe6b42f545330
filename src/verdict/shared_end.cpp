// SPDX-License-Identifier: Apache-2.0
#include "verdict/shared_end.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/units.hpp"
#include "measure/statistics.hpp"
#include "verdict/constants.hpp"
#include "verdict/network_links.hpp"

namespace assay::verdict {
namespace {

/// Share of its links across that is slow at each node of a slow switch: more than a healthy node has where
/// half of its partners are slow, less than the switch as a whole, from which single nodes deviate.
constexpr double every_node_share = 0.6;

enum class Level { leaf, path, node, end };  ///< path: from one switch to another

struct Link {
  const SeriesRow* row = nullptr;
  const Below* below = nullptr;  ///< null: within its bound
  std::int32_t part = -1;        ///< row of /entities that explains it
  bool counts = true;            ///< not what the retest cleared: near the bound it says nothing
};

/// What a part sends or receives.
struct EndTraffic {
  std::vector<Link*> links;
  std::set<std::int32_t> partners, met;  ///< met: also those of links that are explained already
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

struct EndClaim {
  std::int32_t part = -1, other = -1;  ///< of a path both switches
  std::vector<Link*> links;            ///< all of the part that are judged for it
  bool out = false, in = false;
  Level level = Level::end;
};

/// Median deficit of the links beyond the bound.
double depth_of(const EndClaim& c) {
  std::vector<double> deficits;
  for (const auto* l : c.links)
    if (l->below != nullptr)
      deficits.push_back(deficit_of(l->below->value, l->below->reference, l->below->higher_is_better));
  return deficits.empty() ? 0 : median(deficits);
}

class Ends {
 public:
  Ends(const Judgement& j, const network::Places& places, std::vector<Link>& links)
      : j_(j), places_(places), links_(links) {
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
    if (level == Level::leaf || level == Level::path) return places_.switch_of(end);
    return level == Level::node ? j_.entities.node(end) : end;
  }

 private:
  bool touches(const Link& l, const EndClaim& c) const {
    const auto from = part_of(l.row->source, c.level), to = part_of(l.row->destination, c.level);
    if (c.level == Level::path)
      return (from == c.part && to == c.other) || (c.in && from == c.other && to == c.part);
    return from != to && (from == c.part || to == c.part);
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
      EndClaim c{part, -1, {}, sent.bad() || (out && enough), received.bad() || (in && enough), level};
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
  std::map<std::int32_t, std::set<std::int32_t>> ends_of_node_, nodes_of_switch_;
  std::set<std::int32_t> good_;              ///< nodes with a link as it should be
  std::map<std::int32_t, bool> slow_below_;  ///< of a switch, as it was asked for
};

/// Its median link: of those measured again if there are any.
const Below& median_of(const EndClaim& c) {
  std::vector<const Below*> links;
  for (const bool retested : {true, false}) {
    for (const auto* l : c.links)
      if (l->below != nullptr && l->below->retested == retested) links.push_back(l->below);
    if (!links.empty()) break;
  }
  const auto ratio = [](const Below* b) {
    return b->higher_is_better ? b->value / b->reference : b->reference / b->value;
  };
  const auto middle = links.begin() + static_cast<std::ptrdiff_t>(links.size() / 2);
  std::nth_element(links.begin(), middle, links.end(),
                   [&](const Below* a, const Below* b) { return ratio(a) < ratio(b); });
  return **middle;
}

}  // namespace

void explain_by_ends(Judgement& j, const Series& s, std::vector<const SeriesRow*>& all,
                     std::vector<Below>& below, const std::string& reference_kind, const std::string& what) {
  if (s.kind != "link" || below.size() < constants::shared_end_partners) return;
  std::map<const SeriesRow*, const Below*> slow;
  for (const auto& b : below) slow[b.row] = &b;
  std::vector<Link> links;
  for (const auto* row : all) {
    if (row->source < 0 || row->destination < 0) continue;
    const auto it = slow.find(row);
    const Below* own = it == slow.end() ? nullptr : it->second;
    const bool counts = own == nullptr || !cleared(*own);
    links.push_back({row, counts ? own : nullptr, -1, counts});
  }
  const network::Places places(j);
  const auto claims = Ends(j, places, links).claims();
  if (claims.empty()) return;
  for (const auto& c : claims) {
    Below b = median_of(c);
    b.entity = c.part;
    auto f = magnitude(j, s, b, reference_kind, what);
    const auto nic = c.level == Level::node ? places.only_nic(c.part) : -1;
    if (nic >= 0) f.part = j.entities.name(nic);
    const auto count =
        std::count_if(c.links.begin(), c.links.end(), [](const Link* l) { return l->below != nullptr; });
    f.text += "; median of " + std::to_string(count) + " of the " + std::to_string(c.links.size()) +
              " links " +
              (c.level == Level::path ? std::string(c.in ? "between them" : "from the one to the other")
               : c.out && c.in        ? "it has"
               : c.out                ? "it sends over"
                                      : "it receives over") +
              ", which are beyond it";
    if (c.level == Level::path) {
      f.text += "; either switch or what joins them";
      f.text.insert(f.name.size(), " and " + j.entities.name(c.other));
      f.name += " and " + j.entities.name(c.other);
      f.id.clear();
      j.add(std::move(f), {c.part, c.other});
    } else {
      j.add(std::move(f), {c.part});
    }
  }
  std::set<const SeriesRow*> explained;
  for (const auto& l : links)
    if (l.part >= 0) explained.insert(l.row);
  std::erase_if(below, [&](const Below& b) { return explained.contains(b.row); });
  std::erase_if(all, [&](const SeriesRow* row) { return explained.contains(row); });
}

}  // namespace assay::verdict
