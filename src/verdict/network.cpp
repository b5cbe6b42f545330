// SPDX-License-Identifier: Apache-2.0
#include "verdict/network.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "base/units.hpp"
#include "verdict/network_claims.hpp"
#include "verdict/network_constants.hpp"
#include "verdict/network_relief.hpp"

namespace assay::verdict {
namespace network {
namespace {

/// A logarithmic deficit as the fraction of the rate that is missing.
double fraction(double logarithmic) { return -std::expm1(-logarithmic); }

std::string name_of_part(const Judgement& j, const NetworkPart& part) {
  if (part.place == PartKind::leaf) {
    const auto row = switch_row(j, part.leaf);
    return row >= 0 ? j.entities.name(row) : "switch:" + part.leaf;
  }
  return j.entities.name(part.row);
}

std::vector<std::int32_t> rows_of_part(const Judgement& j, const NetworkPart& part) {
  if (part.place != PartKind::leaf) return {part.row};
  const auto row = switch_row(j, part.leaf);
  return row >= 0 ? std::vector{row} : std::vector<std::int32_t>{};
}

/// A pair does not tell which end is at fault: both have it.
std::vector<std::int32_t> rows_of_claim(const Judgement& j, const Claim& c) {
  auto rows = rows_of_part(j, c.part);
  if (c.part.place != PartKind::pair) return rows;
  if (c.part.other >= 0) rows.push_back(c.part.other);
  for (const int end : ends_of(c.screened->set, *c.suspect))
    rows.push_back(c.screened->set.ends[at(end)].row);
  return rows;
}

bool is_server(const Claim& c) {
  const LinkSet& set = c.screened->set;
  return c.part.storage && c.part.place == PartKind::node && set.ends[at(c.suspect->index)].server;
}

std::string what_is_slow(const Claim& c) {
  const bool bandwidth = c.screened->set.series->better != results::Better::lower;
  std::string text;
  switch (c.part.place) {
    case PartKind::leaf:
      text = c.suspect->way == Way::out  ? "links up from this switch"
             : c.suspect->way == Way::in ? "links down to this switch"
                                         : "links of this switch to others";
      break;
    case PartKind::pair: text = c.part.other >= 0 ? "this pair, both ways" : "this pair"; break;
    case PartKind::node:
    case PartKind::end:
      text = c.part.storage               ? is_server(c) ? "all its clients" : "all its servers"
             : c.suspect->way == Way::out ? "all it sends"
             : c.suspect->way == Way::in  ? "all it receives"
                                          : "all its pairs";
      if (c.screened->set.inside) text += " inside the node";
      break;
  }
  return text + (bandwidth ? " slow" : " late");
}

results::Finding finding_of(const Judgement& j, const Places& places, const Claim& c) {
  static constexpr const char* severities[] = {"", "INFO", "WARN", "FAIL"};
  const LinkSet& set = c.screened->set;
  const Series& s = *set.series;
  const bool retested = c.result.measured && !c.cleared;
  const double deficit = retested ? c.result.deficit : c.suspect->deficit;
  auto f =
      j.about(s, c.part.row, severities[c.severity], c.severity == 3 ? "magnitude" : "abnormality", "slow");
  f.name = name_of_part(j, c.part);
  if (c.part.place == PartKind::leaf) {
    f.level = "switch";
    f.id = j.entities.id(switch_row(j, c.part.leaf));
  }
  if (c.part.place == PartKind::pair) f.level = "link";
  if (c.part.place == PartKind::node && !set.inside && !set.to_servers()) {
    const auto nic = places.only_nic(c.part.row);
    if (nic >= 0) f.part = j.entities.name(nic);
  }
  const double sign = s.better == results::Better::lower ? -1 : 1;
  const double usual = c.suspect->usual;
  const double reference = std::isnan(usual) ? set.centre + c.suspect->reference : usual;
  f.reference = std::exp(sign * reference);
  const double value = std::exp(sign * (reference - deficit));
  const bool dead = std::abs(std::log(value / s.dead_value)) < std::log(2.0);  // nobody measured it
  if (!dead) f.value = value;
  f.reference_kind = "peers";
  f.deficit = fraction(deficit);
  if (retested && std::isfinite(c.result.low)) {
    f.ci_low = fraction(c.result.low);
    f.ci_high = fraction(c.result.high);
  }
  std::int64_t samples = 0;
  const auto ends = ends_of(set, *c.suspect);
  const std::set<int> own(ends.begin(), ends.end());
  for (const auto& p : set.pairs) {
    const bool a = own.contains(p.a), b = own.contains(p.b);
    if (c.suspect->place == PartKind::pair ? a && b : a || b) samples += p.samples;
  }
  f.samples = retested ? c.result.samples : samples;
  f.controls = retested ? c.result.controls : static_cast<std::int64_t>(c.suspect->controls);
  f.confirm(retested ? "retest" : c.severity == 3 ? "size" : "");
  if (retested)
    f.p_adjusted = c.result.p;
  else if (!std::isnan(c.suspect->p_adjusted))
    f.p_adjusted = c.suspect->p_adjusted;
  f.action = c.severity == 3 ? "TRIAGE" : "MONITOR";
  f.text = f.name + (f.part.empty() ? "" : " (" + f.part + ")") + ": " + what_is_slow(c) + ", " + s.full() +
           " " + (dead ? "without a possible value" : format_quantity(value, s.unit)) + " against " +
           format_quantity(*f.reference, s.unit) + " of " + std::to_string(*f.controls) +
           (*f.controls == 1 ? " other, deficit " : " others, deficit ") + percent(*f.deficit) +
           " (n=" + std::to_string(*f.samples) + ")";
  if (c.series.size() > 1) f.text += ", in " + std::to_string(c.series.size()) + " cases";
  f.text += retested          ? ", confirmed by the retest"
            : c.lacks_core    ? ", by less than half in the retest, on cores that others use"
            : c.cleared       ? ", not slow in the retest"
            : c.severity == 3 ? ", certain by its size in several cases"
                              : ", not confirmed";
  return f;
}

/// Whether a lower claim is about links that a higher one explains: pairs of a part that is named itself, and
/// pairs that cross a switch that is, or a path between two, by these claims or as one that failed a bound.
class Explained {
 public:
  Explained(const Judgement& j, const std::vector<Claim>& claims) : j_(j) {
    for (const auto& f : j.found) {
      if (f.finding.severity != "FAIL" || f.finding.kind != "slow") continue;
      if (f.finding.level == "switch") failed_.push_back(f.rows);
      if ((f.finding.level == "node" || f.finding.level == "nic") && of_links(f))
        for (const auto row : f.rows) failed_ends_.insert(row);
    }
    for (const auto& c : claims) {
      if (c.severity < 2 || c.part.place == PartKind::pair) continue;
      if (c.part.place == PartKind::leaf) {
        leaves_.insert(c.part.leaf);
        continue;
      }
      auto& known = named_[{c.part.inside, c.part.storage, c.part.row}];
      known = std::max(known, c.severity);
    }
  }
  bool by_higher(const Claim& c) const {
    if (c.part.place == PartKind::leaf || c.part.place == PartKind::node) return false;
    if (c.part.place == PartKind::pair && crosses(c)) return true;
    for (const int end : ends_of(c.screened->set, *c.suspect)) {
      const auto row = c.screened->set.ends[at(end)].row;
      if (c.part.place == PartKind::pair && !c.part.inside && !c.part.storage &&
          (failed_ends_.contains(row) || failed_ends_.contains(j_.entities.node(row))))
        return true;
      if (c.part.place == PartKind::pair && severity(c.part, row) >= c.severity) return true;
      const auto node = j_.entities.node(row);
      if (node != c.part.row && severity(c.part, node) >= c.severity) return true;
    }
    return false;
  }

 private:
  bool of_links(const Found& f) const {
    const Series* s = series_of(j_, f.finding);
    return s != nullptr && s->kind == "link" && !s->is_of(results::MetricClass::storage);
  }
  bool crosses(const Claim& c) const {
    const LinkSet& set = c.screened->set;
    const Pair& pair = set.pairs[at(c.suspect->index)];
    if (!set.crosses(pair)) return false;
    std::vector<std::int32_t> switches;
    for (const int end : {pair.a, pair.b}) {
      const auto& leaf = set.leaves[at(set.ends[at(end)].leaf)];
      if (leaves_.contains(leaf)) return true;
      switches.push_back(switch_row(j_, leaf));
    }
    return std::any_of(failed_.begin(), failed_.end(), [&](const auto& rows) {
      return !rows.empty() && std::all_of(rows.begin(), rows.end(), [&](std::int32_t row) {
        return std::find(switches.begin(), switches.end(), row) != switches.end();
      });
    });
  }
  int severity(const NetworkPart& like, std::int32_t row) const {
    const auto it = named_.find({like.inside, like.storage, row});
    return it == named_.end() ? 0 : it->second;
  }
  const Judgement& j_;
  std::map<std::tuple<bool, bool, std::int32_t>, int> named_;
  std::set<std::string> leaves_;
  std::set<std::int32_t> failed_ends_;
  std::vector<std::vector<std::int32_t>> failed_;  ///< rows of a switch, or of both of a path
};

const Claim* worst_of(const std::vector<const Claim*>& claims) {
  return *std::max_element(claims.begin(), claims.end(), [](const auto* a, const auto* b) {
    return std::tuple(a->severity, a->suspect->deficit) < std::tuple(b->severity, b->suspect->deficit);
  });
}

/// Many parts of one kind are a population, not many faults: so they are when they are more than 8, and of
/// nodes and NICs a share of all. Pairs that many have a cause that pairs cannot tell.
bool add_split(Judgement& j, const Places& places, const std::vector<const Claim*>& same) {
  const LinkSet& set = same.front()->screened->set;
  const PartKind place = same.front()->part.place;
  const bool storage = same.front()->part.storage, servers = is_server(*same.front());
  const std::size_t all = place == PartKind::pair   ? set.pairs.size()
                          : place == PartKind::leaf ? set.leaves.size()
                          : storage ? set.ends_like(set.ends[at(same.front()->suspect->index)])
                          : place == PartKind::node ? set.node_rows.size()
                                                    : set.ends.size();
  const double least =
      place == PartKind::pair ? 0 : constants::network_split_share * static_cast<double>(all);
  if (same.size() <= constants::network_split_members || static_cast<double>(same.size()) < least)
    return false;
  const Claim* worst = worst_of(same);
  auto f = finding_of(j, places, *worst);
  std::vector<std::int32_t> rows;
  for (const auto* c : same) {
    f.members.push_back(name_of_part(j, c->part));
    const auto own = rows_of_claim(j, *c);
    rows.insert(rows.end(), own.begin(), own.end());
  }
  f.level = f.name = "cluster";
  f.id.clear();
  f.part.clear();
  f.kind = "split";
  static constexpr const char* kinds[] = {" switches", " nodes", " devices", " pairs"};
  f.text = "cluster: " + std::to_string(same.size()) + " of " + std::to_string(all) +
           (servers ? " servers" : kinds[static_cast<std::size_t>(place)]) +
           " are slower than the others in " + f.metric + ", worst " + name_of_part(j, worst->part) + " by " +
           percent(*f.deficit) + "; members " + first_of(f.members) + (f.confirmed ? "" : ", not confirmed");
  j.add(std::move(f), rows);
  return true;
}

/// The two switches that nearly all of these pairs lie between.
std::optional<std::pair<std::string, std::string>> path_of(const std::vector<const Claim*>& pairs) {
  std::map<std::pair<std::string, std::string>, std::size_t> paths;
  for (const auto* c : pairs) {
    const LinkSet& set = c->screened->set;
    const Pair& p = set.pairs[at(c->suspect->index)];
    const auto leaf = [&](int end) { return set.leaves[at(set.ends[at(end)].leaf)]; };
    if (set.crosses(p)) ++paths[std::minmax({leaf(p.a), leaf(p.b)})];
  }
  for (const auto& [path, count] : paths)
    if (10 * count >= 9 * pairs.size()) return path;
  return std::nullopt;
}

/// Many pairs between two switches: either may be at fault, or what joins them. No node is.
bool add_path(Judgement& j, const Places& places, const std::vector<const Claim*>& pairs) {
  if (pairs.size() <= constants::network_split_members) return false;
  const auto path = path_of(pairs);
  if (!path) return false;
  const Claim* worst = worst_of(pairs);
  auto f = finding_of(j, places, *worst);
  std::vector<std::int32_t> rows;
  std::string names;
  for (const std::string& leaf : {path->first, path->second}) {
    const auto row = switch_row(j, leaf);
    if (row >= 0) rows.push_back(row);
    names += (names.empty() ? "" : " and ") + (row >= 0 ? j.entities.name(row) : "switch:" + leaf);
  }
  f.level = "switch";
  f.name = names;
  f.id.clear();
  f.part.clear();
  f.text = names + ": " + std::to_string(pairs.size()) +
           " pairs between them are slower than the others in " + f.metric + ", worst " +
           name_of_part(j, worst->part) + " by " + percent(*f.deficit) +
           (f.confirmed ? "" : ", not confirmed") + "; either switch or what joins them";
  j.add(std::move(f), rows);
  return true;
}

/// Pairs beside a population that is slow as a whole are more of the same.
void fold_into_split(Judgement& j, Found& split, const std::vector<const Claim*>& pairs) {
  for (const auto* c : pairs) {
    split.finding.members.push_back(name_of_part(j, c->part));
    const auto own = rows_of_claim(j, *c);
    split.rows.insert(split.rows.end(), own.begin(), own.end());
  }
  if (!pairs.empty()) split.finding.text += "; and " + std::to_string(pairs.size()) + " pairs";
}

/// Findings of other rules about single links of a named part: its partners are not at fault, and links that
/// miss a bound by less than the failed part is slow are more of the same.
void relieve_partners(Judgement& j, const std::vector<Claim>& claims, std::size_t before) {
  std::map<std::int32_t, double> named;  // the deficit of those that failed, else 0
  for (const auto& c : claims)
    if (c.severity >= 2 && !c.part.inside && !c.part.storage &&
        (c.part.place == PartKind::node || c.part.place == PartKind::end)) {
      double& deficit = named[c.part.row];
      if (c.severity == 3)
        deficit = std::max(deficit, fraction(c.result.measured ? c.result.deficit : c.suspect->deficit));
    }
  if (named.empty()) return;
  const auto deficit_of = [&](std::int32_t row) {
    double most = -1;
    for (const auto part : {row, j.entities.node(row)})
      if (const auto it = named.find(part); it != named.end()) most = std::max(most, it->second);
    return most;
  };
  const auto of_a_failed_part = [&](Found& f) {
    if (f.finding.level != "link") return false;
    double most = -1;
    for (const auto row : f.rows) most = std::max(most, deficit_of(row));
    if (most < 0) return false;
    std::erase_if(f.rows, [&](std::int32_t row) { return j.entities.node(row) >= 0 && deficit_of(row) < 0; });
    return f.finding.kind == "slow" && f.finding.deficit && *f.finding.deficit < most;
  };
  const auto end = j.found.begin() + static_cast<std::ptrdiff_t>(before);
  j.found.erase(std::remove_if(j.found.begin(), end, of_a_failed_part), end);
}

void mark_compared(Judgement& j) {
  for (auto& s : j.series) {
    if (s.kind != "link" || !s.judged || s.rows.size() < 2) continue;
    for (auto& row : s.rows) row.reference = std::max<std::uint8_t>(row.reference, Reference::peers);
  }
}

}  // namespace
}  // namespace network

void judge_network(Judgement& j) {
  using namespace network;
  const Places places(j);
  const auto screened = screen(j, places);
  if (screened.empty()) return;
  mark_compared(j);
  j.expected_false_fails += constants::network_alpha_fail;
  const auto claims = claims_of(j, places, screened);
  const std::size_t before = j.found.size();
  const Explained explained(j, claims);
  // What was not measured again is no member of a fault, nor is a part that lacks less than one itself. Many
  // pairs have one cause that pairs cannot tell, whatever each of them lacks.
  enum class Standing { fault, measured, open };
  const auto standing = [](const network::Claim& c) {
    const bool by_size =
        c.severity == 2 && network::fraction(c.result.deficit) >= c.screened->set.least().fail;
    if ((c.severity == 3 || (c.result.measured && by_size)) && c.part.place != PartKind::pair)
      return Standing::fault;
    return c.severity < 3 && !c.result.measured ? Standing::open : Standing::measured;
  };
  // Place, inside, of storage, a server.
  using Kind = std::tuple<PartKind, bool, bool, bool, Standing>;
  std::map<Kind, std::vector<const network::Claim*>> by_kind;
  for (const auto& c : claims) {
    if (explained.by_higher(c)) continue;
    by_kind[{c.part.place, c.part.inside, c.part.storage, is_server(c), standing(c)}].push_back(&c);
  }
  std::map<std::pair<bool, bool>, std::size_t> splits;  // where in `found`, by inside and storage
  for (const auto& [kind, same] : by_kind) {
    std::vector<const network::Claim*> said;
    std::copy_if(same.begin(), same.end(), std::back_inserter(said),
                 [](const auto* c) { return c->severity >= 2; });
    const auto& [place, inside, storage, server, of] = kind;
    const auto whole = splits.find({inside, storage});
    if (place == PartKind::pair && whole != splits.end()) {
      fold_into_split(j, j.found[whole->second], said);
      continue;
    }
    const bool split = !said.empty() &&
                       ((place == PartKind::pair && add_path(j, places, said)) || add_split(j, places, said));
    if (split) splits[{inside, storage}] = j.found.size() - 1;
    for (const auto* c : same)
      if (!split || c->severity < 2) j.add(finding_of(j, places, *c), rows_of_claim(j, *c));
  }
  add_slower_servers(j, screened);
  relieve_partners(j, claims, before);
  relieve_by_switches(j, places);
}

}  // namespace assay::verdict
