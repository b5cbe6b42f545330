// SPDX-License-Identifier: Apache-2.0
#include "verdict/network_screen.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "measure/statistics.hpp"
#include "verdict/agreement.hpp"
#include "verdict/network_claims.hpp"
#include "verdict/network_constants.hpp"
#include "verdict/population.hpp"

namespace assay::verdict::network {
namespace {

bool judged_here(const Series& s) {
  return s.kind == "link" && s.judged && s.first != nullptr && retest_number(s.name) == 0 &&
         s.rows.size() >= 2;
}

/// Rounds of which most pairs are slow are centred too low: what a finding states as usual is looked up. By
/// class: rails and paths across switches differ.
void find_usual_rates(Screened& one) {
  constexpr std::size_t least = 3;
  const LinkSet& set = one.set;
  std::vector<bool> suspect(set.ends.size(), false);
  std::set<int> slow_pairs;
  for (const auto& s : one.suspects) {
    if (s.place == PartKind::pair)
      slow_pairs.insert(s.index);
    else
      for (const int end : ends_of(set, s)) suspect[at(end)] = true;
  }
  std::unordered_map<std::int32_t, double> medians;
  for (const auto& row : set.series->rows) medians[row.entity] = row.median;
  const double sign = set.series->better == results::Better::lower ? -1 : 1;
  std::map<int, std::vector<double>> rates;
  std::vector<std::vector<int>> classes(set.ends.size());
  for (std::size_t i = 0; i < set.pairs.size(); ++i) {
    const Pair& p = set.pairs[i];
    for (const int end : {p.a, p.b}) classes[at(end)].push_back(p.cls);
    if (suspect[at(p.a)] || suspect[at(p.b)] || slow_pairs.contains(static_cast<int>(i))) continue;
    for (const auto row : {p.row_ab, p.row_ba})
      if (const auto it = medians.find(row); it != medians.end() && it->second > 0)
        rates[p.cls].push_back(sign * std::log(it->second));
  }
  std::map<int, double> usual;
  for (const auto& [cls, of] : rates)
    if (of.size() >= least) usual[cls] = median(of);
  for (auto& s : one.suspects) {
    std::vector<double> like;  // one value for each of its pairs
    const auto add = [&](int cls) {
      if (const auto it = usual.find(cls); it != usual.end()) like.push_back(it->second);
    };
    if (s.place == PartKind::pair)
      add(set.pairs[at(s.index)].cls);
    else
      for (const int end : ends_of(set, s)) std::ranges::for_each(classes[at(end)], add);
    s.usual = like.empty() ? results::not_taken : median(like);
  }
}

/// No pair is at fault where most servers are slower for all clients, nor is one of them.
void explain_by_servers(Screened& one) {
  one.apart = slower_servers(one.set);
  if (!one.apart) return;
  std::erase_if(one.suspects, [&](const SlowPlace& s) {
    const auto ends = ends_of(one.set, s);
    return std::any_of(ends.begin(), ends.end(), [&](int end) {
      return std::ranges::find(one.apart->slower, end) != one.apart->slower.end();
    });
  });
}

bool same(const SlowPlace& a, const SlowPlace& b) { return a.place == b.place && a.index == b.index; }

/// Keeps a suspect of few samples only where the cases of other message sizes agree on it.
void keep_what_sizes_agree_on(const Judgement& j, std::vector<Screened>& all) {
  using Group = std::tuple<std::string, std::string, bool>;  // suite, metric, inside
  std::map<Group, std::vector<Screened*>> groups;
  for (auto& one : all)
    groups[{one.set.series->suite, one.set.series->metric, one.set.inside}].push_back(&one);
  for (auto& [group, sets] : groups) {
    std::map<NetworkPart, std::map<const Screened*, SlowPlace*>> parts;
    std::set<NetworkPart> few;
    for (auto* one : sets)
      for (auto& s : one->suspects) {
        const auto part = part_of(j, one->set, s);
        parts[part].try_emplace(one, &s);
        if (s.few) few.insert(part);
      }
    for (const auto& part : few) {
      std::vector<SizedCase> cases;
      std::vector<SlowPlace*> suspects;
      for (const auto* one : sets) {
        const auto it = parts[part].find(one);
        suspects.push_back(it == parts[part].end() ? nullptr : it->second);
        cases.push_back({message_bytes(*one->set.series), suspects.back() != nullptr,
                         suspects.back() != nullptr ? suspects.back()->samples : 0});
      }
      const auto agree = agreeing(cases);
      for (std::size_t i = 0; i < suspects.size(); ++i)
        if (agree[i] && suspects[i]->few) {
          suspects[i]->few = false;
          suspects[i]->strong = true;
        }
    }
  }
  for (auto& one : all) std::erase_if(one.suspects, [](const auto& s) { return s.few; });
}

}  // namespace

bool Screened::small() const { return units < constants::network_robust_population; }

std::vector<bool> no_controls(const Screened& screened) {
  std::vector<bool> apart(screened.suspects.size(), true);
  if (!screened.small()) return apart;
  std::vector<std::size_t> weakest_first;
  double most = 0;
  for (std::size_t i = 0; i < apart.size(); ++i)
    if (screened.suspects[i].place != PartKind::pair) {
      weakest_first.push_back(i);
      most = std::max(most, screened.suspects[i].deficit);
    }
  std::ranges::sort(weakest_first, {}, [&](std::size_t i) { return screened.suspects[i].deficit; });
  const auto free_pairs = [&] {
    std::vector<bool> taken(screened.set.ends.size(), false);
    std::set<std::pair<int, int>> suspects, free;
    for (std::size_t i = 0; i < apart.size(); ++i) {
      const SlowPlace& s = screened.suspects[i];
      const auto ends = apart[i] ? ends_of(screened.set, s) : std::vector<int>();
      if (s.place == PartKind::pair)
        suspects.insert(std::minmax(ends[0], ends[1]));
      else
        for (const int end : ends) taken[at(end)] = true;
    }
    for (const Pair& p : screened.set.pairs)
      if (!taken[at(p.a)] && !taken[at(p.b)] && !suspects.contains(std::minmax(p.a, p.b)))
        free.insert(std::minmax(p.a, p.b));
    return free.size();
  };
  for (const std::size_t i : weakest_first) {
    const double deficit = screened.suspects[i].deficit;
    if (2 * deficit > most || deficit > log_deficit(constants::network_weak_suspect) ||
        free_pairs() >= constants::network_least_free_pairs)
      break;
    apart[i] = false;
  }
  return apart;
}

std::vector<int> ends_of(const LinkSet& set, const SlowPlace& s) {
  if (s.place == PartKind::end) return {s.index};
  if (s.place == PartKind::pair) {
    const auto& p = set.pairs[static_cast<std::size_t>(s.index)];
    return {p.a, p.b};
  }
  std::vector<int> ends;
  for (std::size_t e = 0; e < set.ends.size(); ++e) {
    const int part = s.place == PartKind::leaf ? set.ends[e].leaf : set.ends[e].node;
    if (part == s.index) ends.push_back(static_cast<int>(e));
  }
  return ends;
}

std::vector<Screened> screen(const Judgement& j, const Places& places) {
  std::vector<Screened> all;
  for (const auto& s : j.series) {
    if (!judged_here(s)) continue;
    for (auto& set : link_sets(j, places, s)) {
      Screened one;
      one.units = set.inside ? set.ends.size() : set.node_rows.size();
      one.set = std::move(set);
      all.push_back(std::move(one));
    }
  }
  Options options;
  options.alpha_screen = constants::network_alpha_screen;
  options.alpha_warn = constants::network_alpha_warn;
  options.sets = std::max<std::size_t>(1, all.size());
  for (auto& one : all) {
    if (one.small()) one.suspects = small_suspects(one.set);
    if (one.units < constants::network_deletion_population) continue;
    for (const auto& s : localise(one.set, options)) {
      const auto known =
          std::find_if(one.suspects.begin(), one.suspects.end(), [&](const auto& k) { return same(k, s); });
      if (known == one.suspects.end())
        one.suspects.push_back(s);
      else
        known->p_adjusted = s.p_adjusted;
    }
  }
  for (auto& one : all) explain_by_servers(one);
  keep_what_sizes_agree_on(j, all);
  for (auto& one : all)
    if (!one.suspects.empty()) find_usual_rates(one);
  return all;
}

}  // namespace assay::verdict::network
