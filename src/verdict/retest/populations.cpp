// SPDX-License-Identifier: Apache-2.0
// Suspects among peers: who is measured again, and with which controls.
#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/random.hpp"
#include "verdict/constants.hpp"
#include "verdict/retest/candidates.hpp"
#include "verdict/retest/result.hpp"

namespace assay::verdict {
namespace {

double excess_of(const Suspect& s) { return s.deficit / log_deficit(s.delta); }

/// `n` of `rows`, drawn at random but always the same.
std::vector<std::int32_t> draw(std::vector<std::int32_t> rows, std::size_t n, std::uint64_t seed,
                               const std::string& name) {
  const auto order = RandomStream(seed, name).permutation(rows.size());
  std::vector<std::int32_t> drawn;
  for (std::size_t i = 0; i < std::min(n, rows.size()); ++i) drawn.push_back(rows[order[i]]);
  std::sort(drawn.begin(), drawn.end());
  return drawn;
}

/// Samples for a standard error of a twelfth of delta, from the error that screening had.
std::int32_t samples_for(const Population& p) {
  std::vector<std::int32_t> counts;
  for (const auto& m : p.members) counts.push_back(m.row->n);
  const double have = counts.empty() ? 0 : *std::min_element(counts.begin(), counts.end());
  const double wanted = have * std::pow(12 * p.se / p.delta, 2);
  return static_cast<std::int32_t>(std::clamp(wanted, static_cast<double>(constants::retest_samples),
                                              static_cast<double>(constants::retest_most_samples)));
}

Retest make(const Judgement& j, const Population& p, int number, std::vector<std::int32_t> candidates,
            std::vector<std::int32_t> controls, std::size_t most_controls) {
  Retest r = retest_of(p.series->suite, p.series->name, p.series->metric, number);
  r.samples = samples_for(p);
  const auto seed = mix64(j.results.info.seed, static_cast<std::uint64_t>(number));
  r.candidates = std::move(candidates);
  std::sort(r.candidates.begin(), r.candidates.end());
  r.controls = draw(std::move(controls), most_controls, seed, r.suite + "/" + r.name + ":" + r.metric);
  return r;
}

std::size_t controls_for(std::size_t n) {
  const auto share =
      static_cast<std::size_t>(std::ceil(constants::retest_control_fraction * static_cast<double>(n)));
  return std::clamp(share, constants::retest_controls, constants::retest_most_controls);
}

/// Members of the population without a suspicion.
std::vector<std::int32_t> unsuspected(const Screening& screening, const Population& p, std::size_t index) {
  std::set<std::int32_t> suspected;
  for (const auto& s : screening.suspects) {
    if (s.population == index) suspected.insert(p.members[s.member].row->entity);
  }
  std::vector<std::int32_t> rows;
  for (const auto& m : p.members) {
    // Where both sides may be healthy those of the bulk stand for it.
    const bool beside = p.split.apart && m.low != p.split.fast();
    if (!beside && !(m.low && !p.split.apart) && !suspected.contains(m.row->entity))
      rows.push_back(m.row->entity);
  }
  return rows;
}

}  // namespace

std::vector<std::vector<std::size_t>> split_stories(const Screening& screening) {
  struct Story {
    std::string suite;
    std::vector<std::int32_t> low;
    std::vector<std::size_t> populations;
  };
  std::vector<Story> stories;
  for (std::size_t i = 0; i < screening.populations.size(); ++i) {
    const auto& p = screening.populations[i];
    if (!p.split.apart) continue;
    std::vector<std::int32_t> low;
    for (const auto& m : p.members) {
      if (m.low) low.push_back(m.row->entity);
    }
    const auto same = std::find_if(stories.begin(), stories.end(), [&](const Story& s) {
      std::vector<std::int32_t> both;
      std::set_intersection(s.low.begin(), s.low.end(), low.begin(), low.end(), std::back_inserter(both));
      return s.suite == p.series->suite && 10 * both.size() >= 8 * std::max(s.low.size(), low.size());
    });
    if (same != stories.end())
      same->populations.push_back(i);
    else
      stories.push_back({p.series->suite, std::move(low), {i}});
  }
  std::vector<std::vector<std::size_t>> out;
  for (auto& s : stories) {
    const auto rank = [&](std::size_t i) {
      const auto& p = screening.populations[i];
      return std::pair(p.split.explained(), p.split.deficit / log_deficit(p.delta));
    };
    std::stable_sort(s.populations.begin(), s.populations.end(),
                     [&](auto a, auto b) { return rank(a) > rank(b); });
    out.push_back(std::move(s.populations));
  }
  return out;
}

double rank_of(const Screening& screening, const Suspect& s) {
  // Those who are slow together in several metrics are measured in the same one, unless another is much
  // worse.
  const auto& split = screening.populations[s.population].split;
  const double company = split.found && !split.apart ? 1 + 0.5 / static_cast<double>(s.population + 1) : 1.0;
  return excess_of(s) * company;
}

std::vector<std::int32_t> suspected_rows(const Screening& screening, std::size_t population) {
  std::vector<std::int32_t> rows;
  for (const auto& s : screening.suspects)
    if (s.population == population)
      rows.push_back(screening.populations[population].members[s.member].row->entity);
  return rows;
}

namespace {

/// Whether the retest says that a suspect is not slow.
class Refuted {
 public:
  Refuted(const Judgement& j, const Screening& screening, std::size_t candidates)
      : j_(j), screening_(screening), candidates_(candidates) {}

  bool operator()(const Suspect* s) {
    const auto& p = screening_.populations[s->population];
    const auto [it, first] = cases_.try_emplace(s->population);
    if (first) it->second = retest_cases(j_, p);
    return !it->second.empty() && judge_retest(p, it->second, p.members[s->member].row->entity, s->at_clock,
                                               suspected_rows(screening_, s->population), candidates_)
                                      .refuted;
  }

 private:
  const Judgement& j_;
  const Screening& screening_;
  std::size_t candidates_;
  std::map<std::size_t, std::vector<RetestCase>> cases_;
};

}  // namespace

Candidates candidates_of(const Judgement& j, const Screening& screening) {
  const auto part_of = [&](const Suspect& s) {
    const auto& p = screening.populations[s.population];
    return std::pair(p.members[s.member].row->entity, p.series->suite);
  };
  std::map<std::pair<std::int32_t, std::string>, std::vector<const Suspect*>> parts;
  for (const auto& s : screening.suspects) {
    // Controls are no measure of what a part lacks of its node.
    if (s.candidate || (s.warn && s.siblings == 0)) parts[part_of(s)].push_back(&s);
  }
  Candidates out;
  for (auto& [key, of] : parts) {
    const auto rank = [&](const Suspect* s) {
      return std::tuple(s->candidate, s->sure, rank_of(screening, *s));
    };
    std::stable_sort(of.begin(), of.end(), [&](const auto* a, const auto* b) { return rank(a) > rank(b); });
    if (of.front()->candidate) out.named.push_back(of.front());
  }
  std::stable_sort(out.named.begin(), out.named.end(),
                   [](const Suspect* a, const Suspect* b) { return excess_of(*a) > excess_of(*b); });
  if (out.named.size() > constants::retest_most_candidates)
    out.named.resize(constants::retest_most_candidates);
  // One measurement per entity and suite is enough, as long as the retest does not refute it.
  Refuted refuted(j, screening, out.named.size());
  std::size_t places = constants::retest_most_candidates - out.named.size();
  std::array<std::vector<const Suspect*>, 3> turns;  // the next candidate of each, other ones, warnings
  for (const Suspect* s : out.named) {
    const auto& of = parts.at(part_of(*s));
    if (of.size() < 2 || !refuted(s)) continue;
    ++places;
    bool first = true;
    for (auto other = std::next(of.begin()); other != of.end(); ++other) {
      if (refuted(*other)) continue;
      turns[!(*other)->candidate ? 2 : first ? 0 : 1].push_back(*other);
      first = false;
    }
  }
  // Where too many are suspected, the next candidate of each part comes first: no part is left with a refuted
  // metric alone. A refuted metric takes no place.
  for (const auto& turn : turns) out.beside.insert(out.beside.end(), turn.begin(), turn.end());
  if (out.beside.size() > places) out.beside.resize(places);
  return out;
}

std::vector<Retest> population_retests(const Judgement& j) {
  const Screening screening = screen_populations(j);
  std::vector<Retest> asked;
  std::vector<std::size_t> order;  // populations, by their worst candidate
  std::map<std::size_t, std::vector<std::int32_t>> wanted;
  Candidates candidates = candidates_of(j, screening);
  candidates.named.insert(candidates.named.end(), candidates.beside.begin(), candidates.beside.end());
  for (const Suspect* s : candidates.named) {
    auto& rows = wanted[s->population];
    if (rows.empty()) order.push_back(s->population);
    rows.push_back(screening.populations[s->population].members[s->member].row->entity);
  }
  for (const auto index : order) {
    const auto& p = screening.populations[index];
    const auto cases = retest_cases(j, p);
    auto& rows = wanted[index];
    std::erase_if(rows, [&](std::int32_t row) {
      return std::any_of(cases.begin(), cases.end(),
                         [&](const RetestCase& c) { return c.find(row) != nullptr; });
    });
    const int number = cases.empty() ? 1 : cases.back().number + 1;
    if (rows.empty() || number > constants::retest_most_cases) continue;
    asked.push_back(make(j, p, number, rows, unsuspected(screening, p, index), controls_for(p.size())));
  }
  return asked;
}

}  // namespace assay::verdict
