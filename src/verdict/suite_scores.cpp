// SPDX-License-Identifier: Apache-2.0
#include "verdict/suite_scores.hpp"

#include <algorithm>
#include <cmath>

#include "measure/robust.hpp"
#include "measure/statistics.hpp"
#include "verdict/constants.hpp"

namespace assay::verdict {
namespace {

/// Scores of a test in the order of the entities of its suite; 0 for those it does not hold.
std::vector<double> scores_of(const std::vector<Population>& populations, const Combined& c, const Test& t) {
  std::vector<double> scores(c.entities.size(), 0.0);
  const auto& p = populations[t.population];
  for (std::size_t k = 0; k < t.members.size(); ++k)
    scores[c.at.at(p.members[t.members[k]].row->entity)] = t.result.score[k];
  return scores;
}

void find_voices(const std::vector<Population>& populations, Combined& c) {
  std::vector<std::vector<double>> first;  // of each voice
  for (const Test* t : c.tests) {
    auto scores = scores_of(populations, c, *t);
    std::size_t v = 0;
    while (v < first.size() && !alike(first[v], scores)) ++v;
    if (v == first.size()) {
      first.push_back(std::move(scores));
      c.voices.emplace_back();
    }
    c.voices[v].push_back(t);
  }
}

/// Correlated metrics say once what they say, however many they are: the error of single metrics is shared by
/// all, so that a part that is far out in all of them alike needs a test of its own.
void find_story(const std::vector<Population>& populations, Combined& c) {
  const auto& voice = *std::max_element(c.voices.begin(), c.voices.end(),
                                        [](const auto& a, const auto& b) { return a.size() < b.size(); });
  if (voice.size() < constants::story_metrics || 4 * voice.size() < 3 * c.tests.size()) return;
  std::vector<std::vector<double>> scores(c.entities.size()), rates(c.entities.size());
  for (const Test* t : voice) {
    const auto& p = populations[t->population];
    const auto values = values_of(p, *t);
    const double centre = median(values);
    for (std::size_t k = 0; k < t->members.size(); ++k) {
      const auto e = c.at.at(p.members[t->members[k]].row->entity);
      scores[e].push_back(t->result.score[k]);
      rates[e].push_back(values[k] - centre);
    }
  }
  for (std::size_t e = 0; e < scores.size(); ++e) {
    c.story.push_back(scores[e].empty() ? 0.0 : median(scores[e]));
    c.common.push_back(rates[e].empty() ? 0.0 : median(rates[e]));
  }
  c.alike = voice;
}

}  // namespace

std::vector<std::vector<std::size_t>> Combined::nodes() const {
  std::map<std::int32_t, std::vector<std::size_t>> all;
  for (std::size_t k = 0; k < entities.size(); ++k)
    if (node[k] >= 0) all[node[k]].push_back(k);
  std::map<std::size_t, std::size_t> sizes;
  for (const auto& [of, places] : all) ++sizes[places.size()];
  const auto usual = std::max_element(sizes.begin(), sizes.end(),
                                      [](const auto& a, const auto& b) { return a.second < b.second; });
  std::vector<std::vector<std::size_t>> usual_nodes;
  if (usual == sizes.end() || usual->first < 2 || usual->second < constants::peers_min_population)
    return usual_nodes;
  for (auto& [of, places] : all)
    if (places.size() == usual->first) usual_nodes.push_back(std::move(places));
  return usual_nodes;
}

Nested nested_of(const EntityIndex& of, const Population& p, const Test& t) {
  std::vector<std::int32_t> nodes;
  for (const auto i : t.members) nodes.push_back(of.node(p.members[i].row->entity));
  return nested(values_of(p, t), nodes, p.noise_known ? p.se : 0.0);
}

namespace {

/// Leaves those out that surely lack most of their deficit at equal clock, too: they fail by that, and would
/// hide what the clock of others takes. `t`: the test at equal clock, whose members become those of the
/// rates.
void leave_out_slow_at_clock(const Population& p, Test& t) {
  std::vector<std::size_t> left;
  for (std::size_t k = 0; k < t.members.size(); ++k) {
    const std::size_t i = t.members[k];
    const double lacks = p.residual_deficit(i);
    if (!(lacks > std::max(log_deficit(p.delta), p.deficit(i) / 2) &&
          surely_abnormal(t.result, k, constants::alpha_fail, TailPool{})))
      left.push_back(i);
  }
  if (left.size() >= constants::peers_min_population) t.members = std::move(left);
}

}  // namespace

std::vector<Test> tests_of(const EntityIndex& of, const std::vector<Population>& populations) {
  std::vector<Test> tests;
  for (std::size_t n = 0; n < populations.size(); ++n) {
    const auto& p = populations[n];
    if (p.shared || p.size() < constants::deletion_min) continue;
    for (const bool low : {false, true}) {
      Test t;
      t.population = n;
      t.weight = p.series->judging.weight;
      for (std::size_t i = 0; i < p.size(); ++i) {
        if ((p.split.apart && p.members[i].low) == low) t.members.push_back(i);
      }
      // A side of a split is a population of its own only when its spread is not negligible.
      if (t.members.size() < (p.split.apart ? constants::peers_min_population : constants::deletion_min))
        continue;
      t.result = abnormality(values_of(p, t), p.noise_known ? p.se : 0.0);
      t.nested = nested_of(of, p, t).share;
      tests.push_back(t);
      // Throttling shows in the rate as measured, and its clock explains it.
      if (p.clocked && p.slope > 0) {
        t.at_clock = false;
        leave_out_slow_at_clock(p, t);
        t.result = abnormality(values_of(p, t), p.noise_known ? p.se : 0.0);
        tests.push_back(std::move(t));
      }
    }
  }
  return tests;
}

std::string suite_of(const Population& p) {
  return p.series->suite + "\n" + p.series->kind + "\n" +
         p.series->strata[static_cast<std::size_t>(p.stratum)];
}

void share_skew(const std::vector<Population>& populations, const Suites& suites, std::vector<Test>& tests) {
  std::map<const Test*, Skew> shared;
  for (const auto& [name, c] : suites) {
    if (c.voices.size() < 2) continue;  // that is the metric's own
    Skew sum;
    for (const auto& voice : c.voices)
      for (const Test* t : voice) {
        sum.evidence += t->result.told.evidence / static_cast<double>(voice.size());
        sum.ratio += t->result.told.ratio / static_cast<double>(voice.size());
      }
    const auto voices = static_cast<double>(c.voices.size());
    for (const Test* t : c.tests) shared[t] = {sum.evidence / std::sqrt(voices), sum.ratio / voices};
  }
  for (auto& t : tests) {
    const auto of = shared.find(&t);
    if (of == shared.end() || of->second.evidence <= constants::skew_doubt) continue;
    const auto& p = populations[t.population];
    t.result = abnormality(values_of(p, t), p.noise_known ? p.se : 0.0, of->second);
  }
}

Suites combine(const EntityIndex& of, const std::vector<Population>& populations,
               const std::vector<Test>& tests, bool at_clock) {
  Suites suites;
  for (const auto& t : tests) {
    const auto& p = populations[t.population];
    if (t.at_clock != at_clock || p.split.apart) continue;
    auto& c = suites[suite_of(p)];
    c.tests.push_back(&t);
    for (std::size_t k = 0; k < t.members.size(); ++k) {
      const auto row = p.members[t.members[k]].row->entity;
      const auto [it, fresh] = c.at.try_emplace(row, c.entities.size());
      if (fresh) {
        c.entities.push_back(row);
        c.node.push_back(of.node(row));
        c.sums.push_back(0);
        c.counts.push_back(0);
      }
      // One wild metric must not stand for all.
      c.sums[it->second] += std::clamp(t.result.score[k], -20.0, 20.0);
      ++c.counts[it->second];
    }
  }
  for (auto& [name, c] : suites) {
    for (std::size_t i = 0; i < c.sums.size(); ++i) c.sums[i] /= std::sqrt(static_cast<double>(c.counts[i]));
  }
  std::erase_if(suites, [](const auto& s) {
    return s.second.tests.size() < 2 || s.second.entities.size() < constants::peers_min_population;
  });
  for (auto& [name, c] : suites) {
    find_voices(populations, c);
    find_story(populations, c);
  }
  return suites;
}

std::vector<double> values_of(const Population& p, const Test& t) {
  if (!t.own.empty()) return t.own;
  std::vector<double> values;
  values.reserve(t.members.size());
  for (const auto i : t.members) values.push_back(t.at_clock ? p.members[i].residual : p.members[i].rate);
  return values;
}

std::vector<Test> own_tests(const std::vector<Population>& populations, const Combined& c) {
  std::vector<Test> tests;
  for (const Test* t : c.alike) {
    const auto& p = populations[t->population];
    Test own{t->population, t->at_clock, t->members, {}, t->weight, 0, values_of(p, *t)};
    for (std::size_t k = 0; k < own.own.size(); ++k)
      own.own[k] -= c.common[c.at.at(p.members[t->members[k]].row->entity)];
    const double centre = median(own.own);
    for (double& value : own.own) value -= centre;
    own.result = abnormality(own.own, p.noise_known ? p.se : 0.0);
    tests.push_back(std::move(own));
  }
  return tests;
}

namespace {

using SpreadPools = std::map<std::string, SpreadPool>;  ///< by suite_of

void lend(const SpreadPools& pools, const std::vector<Population>& populations, std::vector<Test>& tests) {
  std::map<std::string, SpreadPrior> priors;
  for (const auto& [name, pool] : pools)
    priors[name] = pool.prior(constants::spread_metrics, static_cast<double>(constants::deletion_most));
  for (auto& t : tests) {
    const auto& p = populations[t.population];
    const auto prior = priors.find(suite_of(p));
    if (prior != priors.end() && t.at_clock && !p.split.apart)
      moderate(t.result, values_of(p, t), prior->second);
  }
}

}  // namespace

void lend_spreads(const std::vector<Population>& populations, const Suites& suites, std::vector<Test>& tests,
                  std::vector<Test>& own) {
  const auto add = [](SpreadPool& pool, const Abnormality& a) {
    if (a.size < constants::deletion_most) pool.add(a.variance, static_cast<double>(a.size) - 1);
  };
  SpreadPools rates, of_own;
  for (const auto& [name, c] : suites)
    for (const auto& voice : c.voices)
      add(rates[name], (**std::min_element(voice.begin(), voice.end(), [](auto x, auto y) {
                         return x->result.variance < y->result.variance;
                       })).result);
  for (const auto& t : own) add(of_own[suite_of(populations[t.population])], t.result);
  lend(rates, populations, tests);
  lend(of_own, populations, own);
}

std::vector<double> joint_p(const std::vector<Population>& populations, const Combined& c) {
  std::vector<double> joint(c.entities.size(), 1.0);
  if (c.voices.size() < 2) return joint;
  std::vector<std::vector<double>> p(c.entities.size());
  for (const auto& voice : c.voices) {
    std::vector<double> of(c.entities.size(), -1.0);
    for (const Test* t : voice) {
      const auto& population = populations[t->population];
      for (std::size_t k = 0; k < t->members.size(); ++k) {
        const bool far = t->result.score[k] < -2;
        double& known = of[c.at.at(population.members[t->members[k]].row->entity)];
        known = std::max(known, far ? heavy_p(t->result, k) : 1.0);
      }
    }
    for (std::size_t e = 0; e < of.size(); ++e)
      if (of[e] >= 0) p[e].push_back(of[e]);
  }
  for (std::size_t e = 0; e < p.size(); ++e) {
    const auto far = std::count_if(p[e].begin(), p[e].end(), [](double one) { return one < 1; });
    if (far >= 2) joint[e] = fisher_combine(p[e]);
  }
  return joint;
}

}  // namespace assay::verdict
