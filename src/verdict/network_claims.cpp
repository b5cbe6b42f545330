// SPDX-License-Identifier: Apache-2.0
#include "verdict/network_claims.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "verdict/agreement.hpp"
#include "verdict/constants.hpp"
#include "verdict/network_constants.hpp"
#include "verdict/population.hpp"

namespace assay::verdict::network {
namespace {

/// Better ones are smaller: strong, improbable, large.
auto strength(const SlowPlace& s) {
  return std::tuple(!s.strong, std::isnan(s.p_adjusted) ? 0.0 : s.p_adjusted, -s.deficit);
}

bool shared(const LinkSet& set, const SlowPlace& s) {
  const auto ends = ends_of(set, s);
  return std::any_of(ends.begin(), ends.end(), [&](int e) { return set.ends[at(e)].shared; });
}

/// An end of a pair that lacks its core slows it; a node or switch is known by any that does not.
bool lacks_cores(const Judgement& j, const LinkSet& set, const SlowPlace& s) {
  const auto ends = ends_of(set, s);
  const auto lacks = [&](int end) { return lacks_core(j, *set.series, set.ends[at(end)].row); };
  return s.place == PartKind::pair ? std::any_of(ends.begin(), ends.end(), lacks)
                                   : std::all_of(ends.begin(), ends.end(), lacks);
}

double least_confirmed(const LinkSet& set, PartKind place) {
  if (place == PartKind::leaf) return constants::network_leaf_confirmed;
  return place == PartKind::pair ? set.least().pair : set.least().node_confirmed;
}

int severity_of(const Judgement& j, const Screened& screened, const SlowPlace& s, const RetestResult& c) {
  // Ranks that share cores get what the scheduler gives them: what is half as fast each time it is measured
  // has more to it.
  const bool on_shared = shared(screened.set, s);
  if (!c.measured) return !s.strong ? 0 : on_shared ? 1 : 2;
  const double least = on_shared || (c.slower && lacks_cores(j, screened.set, s))
                           ? log_deficit(constants::peers_shared_deficit)
                           : least_confirmed(screened.set, s.place);
  if (!c.slower || c.deficit < least || (on_shared && !s.strong)) return s.strong ? 1 : 0;
  const double enough =
      j.results.info.level == "smoke" ? constants::coarse_deficit : screened.set.least().fail;
  return 1 - std::exp(-c.sure) > enough ? 3 : 2;
}

bool is_gross(const Screened& screened, const SlowPlace& s) {
  return s.place != PartKind::pair && s.strong && !shared(screened.set, s) &&
         s.deficit > log_deficit(constants::network_gross_deficit);
}

}  // namespace

NetworkPart part_of(const Judgement& j, const LinkSet& set, const SlowPlace& s) {
  NetworkPart part;
  part.place = s.place;
  part.inside = set.inside;
  part.storage = set.to_servers();
  switch (s.place) {
    case PartKind::leaf: part.leaf = set.leaves[at(s.index)]; break;
    case PartKind::node: part.row = set.node_rows[at(s.index)]; break;
    case PartKind::end: {
      const End& e = set.ends[at(s.index)];
      part.row = e.row;
      if (set.inside || j.entities.kind(e.row) == "nic") break;
      if (set.node_rows.size() < set.ends.size() &&
          std::count_if(set.ends.begin(), set.ends.end(), [&](const End& x) { return x.node == e.node; }) > 1)
        break;
      part.place = PartKind::node;
      part.row = set.node_rows[at(e.node)];
      break;
    }
    case PartKind::pair: {
      const Pair& p = set.pairs[at(s.index)];
      // Both ways it has one name in all series.
      part.row = s.way != Way::in && p.row_ab >= 0 ? p.row_ab : p.row_ba >= 0 ? p.row_ba : p.row_ab;
      if (s.way == Way::both) part.other = part.row == p.row_ab ? p.row_ba : p.row_ab;
      break;
    }
  }
  return part;
}

std::vector<std::vector<const SlowPlace*>> assign(const Judgement& j, const std::vector<Screened>& screened) {
  std::vector<std::vector<const SlowPlace*>> assigned(screened.size());
  std::map<NetworkPart, std::pair<std::size_t, const SlowPlace*>> best;
  std::vector<std::size_t> with_pairs;
  for (std::size_t i = 0; i < screened.size(); ++i) {
    bool pairs = false;
    for (const auto& s : screened[i].suspects) {
      pairs = pairs || s.place == PartKind::pair;
      if (s.place == PartKind::pair) continue;
      const auto [it, retest] = best.try_emplace(part_of(j, screened[i].set, s), i, &s);
      if (!retest && strength(s) < strength(*it->second.second)) it->second = {i, &s};
    }
    if (pairs) with_pairs.push_back(i);
  }
  for (const auto& [part, where] : best) assigned[where.first].push_back(where.second);
  std::stable_sort(with_pairs.begin(), with_pairs.end(), [&](std::size_t a, std::size_t b) {
    const auto rank = [&](std::size_t i) {
      const Series& s = *screened[i].set.series;
      const auto& all = screened[i].suspects;
      // A strong one is a warning if it is not measured again.
      const bool strong = std::any_of(all.begin(), all.end(), [](const SlowPlace& suspect) {
        return suspect.place == PartKind::pair && suspect.strong;
      });
      return std::tuple(!strong, !s.required, s.better != results::Better::higher, -message_bytes(s));
    };
    return rank(a) < rank(b);
  });
  // Inside and across have cases of their own.
  for (const bool inside : {false, true}) {
    std::size_t left = constants::network_pair_series;
    for (const std::size_t i : with_pairs) {
      if (screened[i].set.inside != inside || left == 0) continue;
      --left;
      for (const auto& s : screened[i].suspects)
        if (s.place == PartKind::pair) assigned[i].push_back(&s);
    }
  }
  for (auto& list : assigned)
    std::stable_sort(list.begin(), list.end(),
                     [](const auto* a, const auto* b) { return strength(*a) < strength(*b); });
  return assigned;
}

namespace {

using Rank = std::tuple<int, bool, double>;
Rank rank_of_claim(const Claim& c) { return {c.severity, c.result.measured, c.suspect->deficit}; }

/// A pair that is slow one way in one series and both ways in another is one finding.
void join_ways(std::map<NetworkPart, Claim>& claims) {
  std::vector<NetworkPart> both_ways;
  for (const auto& [part, claim] : claims)
    if (part.place == PartKind::pair && part.other >= 0) both_ways.push_back(part);
  for (const auto& part : both_ways)
    for (const auto row : {part.row, part.other}) {
      NetworkPart one = part;
      one.row = row;
      one.other = -1;
      const auto single = claims.find(one), both = claims.find(part);
      if (single == claims.end() || both == claims.end()) continue;
      const bool keep = rank_of_claim(single->second) > rank_of_claim(both->second);
      Claim &kept = keep ? single->second : both->second, &joined = keep ? both->second : single->second;
      kept.series.insert(kept.series.end(), joined.series.begin(), joined.series.end());
      claims.erase(keep ? both : single);
    }
}

}  // namespace

std::vector<Claim> claims_of(const Judgement& j, const Places& places,
                             const std::vector<Screened>& screened) {
  std::map<NetworkPart, Claim> claims;
  std::vector<LinkRetest> all_retested;
  std::size_t sets = 0;
  for (const auto& one : screened) {
    all_retested.push_back(one.suspects.empty() ? LinkRetest{} : link_retest(j, places, one));
    sets += all_retested.back().cases > 0 ? 1 : 0;
  }
  for (const auto& one : screened) {
    if (one.suspects.empty()) continue;
    const LinkRetest& retest = all_retested[static_cast<std::size_t>(&one - screened.data())];
    const auto pairs = static_cast<std::size_t>(std::count_if(
        one.suspects.begin(), one.suspects.end(), [](const auto& s) { return s.place == PartKind::pair; }));
    for (const auto& s : one.suspects) {
      Claim c;
      c.part = part_of(j, one.set, s);
      c.screened = &one;
      c.suspect = &s;
      c.result =
          judge_retest(one, retest, s, s.place == PartKind::pair ? pairs : one.suspects.size() - pairs, sets);
      c.severity = severity_of(j, one, s, c.result);
      c.cleared = c.result.measured && c.severity < 2;
      c.lacks_core = c.cleared && c.result.slower && lacks_cores(j, one.set, s);
      c.gross = is_gross(one, s) ? 1 : 0;
      auto [it, added] = claims.try_emplace(c.part, c);
      Claim& known = it->second;
      if (c.severity > 0 || c.result.measured) known.series.push_back(one.set.series->full());
      if (added) continue;
      known.gross += c.gross;
      const bool cleared = (known.cleared || c.cleared) && known.severity < 3 && c.severity < 3 &&
                           !(known.result.measured && known.severity == 2) &&
                           !(c.result.measured && c.severity == 2);
      if (rank_of_claim(c) > rank_of_claim(known)) {
        c.series = std::move(known.series);
        c.gross = known.gross;
        known = std::move(c);
      }
      // The series that showed it best was measured again and did not show it any more.
      known.cleared = cleared;
      if (cleared) known.severity = std::min(known.severity, 1);
    }
  }
  join_ways(claims);
  std::vector<Claim> all;
  for (auto& [part, claim] : claims)
    if (claim.severity == 2 && !claim.result.measured && claim.gross >= constants::network_gross_cases)
      claim.severity = 3;
  for (auto& [part, claim] : claims)
    if (claim.severity > 0) all.push_back(std::move(claim));
  return all;
}

}  // namespace assay::verdict::network
