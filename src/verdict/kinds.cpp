// SPDX-License-Identifier: Apache-2.0
// Suspects that may be another kind of part.
#include <algorithm>
#include <functional>
#include <map>

#include "verdict/nested.hpp"
#include "verdict/screening.hpp"

namespace assay::verdict {
namespace {

/// How slow the members of a population are, the slowest first: all but those that a configuration explains,
/// and those beside healthy ones.
struct Companies {
  std::vector<bool> alone;  ///< of each member: most others of its node, two or more, are not slow like it
  std::vector<double> all, of_alone;

  Companies(const EntityIndex& entities, const Population& p, bool at_clock) : alone(p.size()) {
    std::map<std::int32_t, std::vector<std::size_t>> nodes;
    for (std::size_t i = 0; i < p.size(); ++i) {
      nodes[entities.node(p.members[i].row->entity)].push_back(i);
      all.push_back(at_clock ? p.residual_deficit(i) : p.deficit(i));
    }
    for (const auto& [node, of] : nodes) {
      if (node < 0 || of.size() < 3) continue;
      for (const auto i : of) {
        alone[i] = median_of_others(all, of, i) < all[i] / 4;
        if (alone[i]) of_alone.push_back(all[i]);
      }
    }
    if (p.split.explained())
      for (std::size_t i = 0; i < p.size(); ++i)
        if (p.members[i].low) all[i] = 0;
    std::sort(all.begin(), all.end(), std::greater<>());
    std::sort(of_alone.begin(), of_alone.end(), std::greater<>());
  }
};

}  // namespace

void spare_other_models(const EntityIndex& entities, const std::vector<Population>& populations,
                        std::vector<Suspect>& suspects) {
  std::map<std::size_t, Companies> companies;
  for (auto& s : suspects) {
    if (s.siblings > 0) continue;
    const auto& p = populations[s.population];
    const auto& of = companies.try_emplace(s.population, entities, p, s.at_clock).first->second;
    const auto& all = of.alone[s.member] ? of.of_alone : of.all;
    const auto half = std::upper_bound(all.begin(), all.end(), s.deficit / 2, std::greater<>());
    const bool faster = p.split.apart && !p.split.explained() && !p.members[s.member].low;
    // By the middle of the company, so that equal parts have equal states.
    const auto company = static_cast<std::size_t>(half - all.begin());
    s.spared = faster || may_be_a_kind(p, company, company > 0 ? all[company / 2] : s.deficit);
    if (s.spared) s.candidate = s.sure = false;
  }
}

}  // namespace assay::verdict
