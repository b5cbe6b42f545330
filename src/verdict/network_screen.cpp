// SPDX-License-Identifier: Apache-2.0
#include "verdict/network_screen.hpp"

#include <algorithm>

#include "verdict/network_constants.hpp"

namespace assay::verdict::network {
namespace {

bool judged_here(const Series& s) {
  return s.kind == "link" && s.judged && s.first != nullptr && retest_number(s.name) == 0 &&
         s.rows.size() >= 2;
}

bool same(const SlowPlace& a, const SlowPlace& b) { return a.place == b.place && a.index == b.index; }

}  // namespace

bool Screened::small() const { return units < constants::network_robust_population; }

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
  return all;
}

}  // namespace assay::verdict::network
