// SPDX-License-Identifier: Apache-2.0
#include "verdict/screening.hpp"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "measure/statistics.hpp"
#include "verdict/constants.hpp"
#include "verdict/nested.hpp"
#include "verdict/suite_scores.hpp"

namespace assay::verdict {
namespace {

class Screener {
 public:
  Screener(const Judgement& j, Screening& out)
      : j_(j), out_(out), tests_(tests_of(j.entities, out.populations)) {
    for (const bool at_clock : {true, false})
      share_skew(out.populations, combine(j.entities, out.populations, tests_, at_clock), tests_);
    suites_ = combine(j.entities, out.populations, tests_, true);
    as_measured_ = combine(j.entities, out.populations, tests_, false);
    std::set<const Test*> heard;
    // Noise says nothing of how parts differ, and a sum of what nodes and devices have looks lighter than
    // either.
    const auto add = [this](const Test& t) {
      if (!(t.result.real > constants::real_enough)) return;
      if (!(t.nested > 0)) return pool_.add(t.members.size(), t.result.peaked, t.result.real);
      const auto by_node = nested_of(j_.entities, out_.populations[t.population], t);
      among_nodes_.add(by_node.nodes.size, by_node.nodes.peaked, by_node.nodes.real);
      within_nodes_.add(t.members.size() - by_node.nodes.size, by_node.within.peaked,
                        by_node.within.real * constants::difference_peak);
    };
    for (const auto& t : tests_) weights_ += t.weight;
    for (auto& [name, c] : suites_) {
      for (Test& own : own_tests(out.populations, c)) {
        add(own);
        own_.push_back(std::move(own));
      }
      // Metrics that tell one story are heard once, by the one with the heaviest tails.
      for (const auto& voice : c.voices) {
        heard.insert(voice.begin(), voice.end());
        add(**std::max_element(voice.begin(), voice.end(),
                               [](auto a, auto b) { return a->result.peaked < b->result.peaked; }));
      }
    }
    for (const auto& t : tests_)
      if (!heard.contains(&t) && t.at_clock) add(t);
    lend_spreads(out.populations, suites_, tests_, own_);
  }

  void run() {
    // Most of the budget for single metrics, a part for the metrics of a suite together, where there are
    // such.
    const double combined = suites_.empty() ? 0.0 : constants::combined_share,
                 joint = suites_.empty() ? 0.0 : constants::joint_share;
    std::set<const Test*> halved;
    for (const auto& [name, c] : suites_) halved.insert(c.alike.begin(), c.alike.end());
    const double single = 1 - combined - joint;
    for (const auto& t : tests_) {
      const double share = single * t.weight / weights_ * (halved.contains(&t) ? 0.5 : 1.0);
      screen(t, share);
      out_.budget += constants::alpha_fail * share;
    }
    for (const auto& t : own_) {
      const double share = single * t.weight / weights_ * 0.5;
      screen(t, share);
      out_.budget += constants::alpha_fail * share;
    }
    // What a clock explains shows in the rates as measured only.
    const double throttled = as_measured_.empty() ? 0.0 : constants::throttled_share;
    screen(suites_, (1 - throttled) * combined, (1 - throttled) * joint);
    screen(as_measured_, throttled * combined, throttled * joint);
    spare_other_models(j_.entities, out_.populations, out_.suspects);
    std::stable_sort(out_.suspects.begin(), out_.suspects.end(), [](const Suspect& a, const Suspect& b) {
      return std::pair(a.population, a.member) < std::pair(b.population, b.member);
    });
  }

 private:
  std::string kind_of(const Population& p, std::size_t i, bool at_clock) const {
    if (!p.clocked) return "slow";
    if (at_clock) return "slow_at_clock";
    const double explained = p.slope * (p.centre_clock - p.members[i].clock);
    return explained > 0.5 * p.deficit(i) ? "throttled" : "slow";
  }

  Suspect make(const Test& t, std::size_t i) const {
    const auto& p = out_.populations[t.population];
    Suspect s;
    s.population = t.population;
    s.member = i;
    s.at_clock = t.at_clock && p.clocked;
    s.kind = kind_of(p, i, t.at_clock);
    s.deficit = s.at_clock ? p.residual_deficit(i) : p.deficit(i);
    s.delta = s.at_clock ? p.delta : p.delta_raw;
    return s;
  }

  /// Adds a suspect, or what it says to the one that is there.
  void add(const Suspect& s) {
    const auto [it, fresh] = known_.try_emplace({s.population, s.member}, out_.suspects.size());
    if (fresh) {
      out_.suspects.push_back(s);
      return;
    }
    auto& known = out_.suspects[it->second];
    const bool better =
        std::tuple(s.sure, s.candidate, log_deficit(s.delta) > 0 ? s.deficit / log_deficit(s.delta) : 0) >
        std::tuple(known.sure, known.candidate, known.deficit / log_deficit(known.delta));
    const auto proven = [](const Suspect& of) { return of.warn && !of.by_size; };
    const bool warn = known.warn || s.warn, by_size = warn && !proven(known) && !proven(s),
               note = known.note && s.note;
    const double p = std::min(known.p, s.p);
    if (better) known = s;
    known.warn = warn;
    known.by_size = by_size;
    known.note = note;
    known.p = p;
  }

  /// Deficits that count for a warning at all: beyond the least, and beyond what the own noise explains.
  bool noticeable(const Population& p, const Suspect& s) const { return noticeable(p, s, s.deficit); }
  bool noticeable(const Population& p, const Suspect& s, double deficit) const {
    const double least = p.eligible() ? constants::delta_notice : constants::peers_min_deficit,
                 errors = p.eligible() ? constants::warn_errors : constants::warn_errors_noisy;
    return fraction(deficit) > least && deficit > errors * p.se_of(s.member);
  }

  /// Under six parts the spread of healthy ones is unknown, so the widest published spread stands in for it;
  /// only where devices take turns, because ranks that measure at the same time disturb one another by more
  /// than that. By a normal distribution they are measured again, by Student's t they fail.
  struct Assumed {
    double normal = 1, heavy = 1;
  };
  Assumed assumed_p(const Population& p, const Test& t, const Suspect& s) const {
    const double n = static_cast<double>(t.members.size());
    if (t.members.size() >= constants::peers_min_population || !p.series->takes_turns) return {};
    const double off = s.deficit / std::hypot(constants::assumed_spread * std::sqrt(1 + 1 / (n - 1)), p.se);
    return {n * boost::math::cdf(boost::math::complement(boost::math::normal(), off)), n * t_below(-off, 4)};
  }

  void screen(const Test& t, double share) {
    const auto& p = out_.populations[t.population];
    // Under six there is no spread to warn by; peers_small.cpp has its own rule.
    const bool may_warn = t.members.size() >= constants::peers_min_population;
    const Nested by_node = t.nested > 0 ? nested_of(j_.entities, p, t) : Nested{};
    for (std::size_t k = 0; k < t.members.size(); ++k) {
      if (t.result.score[k] > -2) continue;
      Suspect s = make(t, t.members[k]);
      // Slow against its peers, and in what this metric has of its own.
      const double shown = t.own.empty() ? s.deficit : std::min(s.deficit, -t.own[k]);
      if (!noticeable(p, s, shown)) continue;
      s.p = std::min(1.0, family_p(t.result, k) / share);
      // Where nodes differ a value is tested as one of its node and as one among nodes, with half the error
      // each.
      const double half = by_node.tells ? 0.5 : 1.0;
      const auto either = [&](const auto& holds) {
        return by_node.tells ? by_node.either(k, holds) : holds(t.result, k);
      };
      const auto surely_by = [&](const Abnormality& a, std::size_t i, double alpha) {
        const auto& pool = &a == &by_node.nodes    ? among_nodes_
                           : &a == &by_node.within ? within_nodes_
                                                   : pool_;
        return surely_abnormal(a, i, alpha, pool, trust_in_tails(a, log_deficit(s.delta)));
      };
      s.warn = may_warn && either([&](const Abnormality& a, std::size_t i) {
                 return abnormal(a, i, constants::alpha_warn * share * half) &&
                        surely_by(a, i, constants::alpha_warn_heavy * share * half);
               });
      // Few samples may be a neighbour on the machine, unless it is a great deal that is missing.
      const bool gross =
          fraction(s.deficit) > constants::coarse_deficit && t.result.score[k] < -constants::gross_deviations;
      const bool enough =
          gross || p.members[t.members[k]].row->n >= constants::peers_small_samples || !p.series->per_sample;
      const bool plain = !p.noise_known || fraction(s.deficit) > constants::gross_deficit;
      s.by_size = !s.warn && may_warn && gross && plain;
      // A gap that no chance leaves is evidence against those beyond it, whatever the tails are.
      const bool beyond_gap = t.at_clock && p.split.found && !p.split.apart && p.members[t.members[k]].low &&
                              s.deficit > p.split.deficit / 2 &&
                              t.result.score[k] < -constants::gross_deviations;
      s.by_size = s.by_size && !beyond_gap;
      s.warn = s.warn || s.by_size || beyond_gap;
      const Assumed assumed = assumed_p(p, t, s);
      s.p = std::min(s.p, assumed.normal / share);
      const double alpha = constants::alpha_fail * share * half;
      const bool in_full = plain || !p.eligible();
      const auto surely = [&](bool full) {
        return either([&](const Abnormality& a, std::size_t i) {
          return surely_by(a, i, full ? alpha : alpha * fault_share(a));
        });
      };
      s.candidate = enough && shown > log_deficit(s.delta) - p.se &&
                    (beyond_gap || surely(true) || assumed.normal <= alpha);
      s.sure = s.candidate && (beyond_gap || assumed.heavy <= alpha || surely(in_full));
      s.note = may_warn && gross && !s.warn && !s.candidate;
      if (s.warn || s.candidate || s.note) add(s);
    }
    if (by_node.tells && may_warn) screen_within(t, by_node, share);
  }

  /// A device may be slow for its node and as fast as any of all nodes. That is a warning only: it was as
  /// good as a healthy device elsewhere. Of two devices nobody knows which one is unusual.
  void screen_within(const Test& t, const Nested& by_node, double share) {
    const auto losses = losses_within(by_node);
    for (std::size_t k = 0; k < t.members.size(); ++k) {
      if (by_node.others[k] < 2 || !abnormal(by_node.within, k, constants::alpha_warn * share / 2) ||
          known_.contains({t.population, t.members[k]}))
        continue;
      Suspect s = make_within(t, by_node, losses, k);
      s.p = std::min(1.0, 2 * family_p(by_node.within, k) / share);
      s.warn = noticeable(out_.populations[t.population], s) &&
               surely_abnormal(by_node.within, k, constants::alpha_warn_heavy * share / 2, within_nodes_,
                               trust_in_tails(by_node.within, log_deficit(s.delta)));
      if (s.warn) add(s);
    }
  }
  /// What each value lacks of the others of its node, the most first.
  static std::vector<double> losses_within(const Nested& by_node) {
    std::vector<double> losses;
    for (const double off : by_node.off) losses.push_back(-off);
    std::sort(losses.begin(), losses.end(), std::greater<>());
    return losses;
  }
  Suspect make_within(const Test& t, const Nested& by_node, const std::vector<double>& losses,
                      std::size_t k) const {
    Suspect s = make(t, t.members[k]);
    s.deficit = -by_node.off[k];
    s.siblings = by_node.others[k];
    const auto half = std::upper_bound(losses.begin(), losses.end(), s.deficit / 2, std::greater<>());
    s.spared = may_be_a_kind(static_cast<std::size_t>(half - losses.begin()), losses.size(), s.deficit);
    return s;
  }

  void screen(const Suites& suites, double combined, double joint) {
    for (const auto& [name, c] : suites) {
      const double n = static_cast<double>(suites.size());
      const auto nodes = c.nodes();
      const double of_nodes = nodes.empty() ? 0.0 : constants::node_share * joint;
      screen(c, combined / n, (joint - of_nodes) / n);
      screen_nodes(c, nodes, of_nodes / n);
      out_.budget += constants::alpha_fail * (combined + joint) / n;
    }
  }

  void screen(const Combined& c, double share, double joint_share) {
    const Abnormality a = abnormality(c.sums), story = abnormality(c.story);
    // A story leaves the metrics little to say jointly.
    const bool told = !c.alike.empty();
    const auto joint = told ? std::vector<double>(c.entities.size(), 1.0) : joint_p(out_.populations, c);
    const double at_most = std::min(0.2, constants::alpha_fail * joint_share * pool_.gain());
    const double n = static_cast<double>(c.entities.size());
    const Nested sums = nested(c.sums, c.node), stories = told ? nested(c.story, c.node) : Nested{};
    const auto sure_of = [&](double alpha) {
      return
          [&, alpha](const Abnormality& of, std::size_t i) { return surely_abnormal(of, i, alpha, pool_); };
    };
    const auto sure_story = [](double alpha) {
      return [alpha](const Abnormality& of, std::size_t i) { return surely_abnormal_story(of, i, alpha); };
    };
    const auto holds = [](const Abnormality& of, const Nested& by_node, std::size_t k, const auto& test) {
      return test(of, k) && by_node.either(k, test);
    };
    for (std::size_t k = 0; k < c.entities.size(); ++k) {
      const bool at_once = n * joint[k] <= at_most;
      const bool far = abnormal(a, k, constants::alpha_warn * share) &&
                       holds(a, sums, k, sure_of(constants::alpha_warn_heavy * share));
      const bool alike_far = told && abnormal(story, k, constants::alpha_warn * joint_share) &&
                             holds(story, stories, k, sure_story(constants::alpha_warn_heavy * joint_share));
      if (a.score[k] > -2 || (!at_once && !far && !alike_far)) continue;
      const bool sure = at_once || holds(a, sums, k, sure_of(constants::alpha_fail * share)) ||
                        (told && holds(story, stories, k, sure_story(constants::alpha_fail * joint_share)));
      auto worst = worst_metric(c, k);
      if (!worst) continue;
      worst->p = std::min({1.0, family_p(a, k) / share, n * joint[k] / joint_share});
      if (told) worst->p = std::min(worst->p, family_p(story, k) / joint_share);
      add_combined(*worst, sure);
    }
    screen_within(c, sums, share);
  }

  void screen_within(const Combined& c, const Nested& sums, double share) {
    if (!sums.tells) return;
    std::map<std::size_t, std::optional<Suspect>> worst;  // of the entities that are far out
    for (std::size_t k = 0; k < c.entities.size(); ++k)
      if (sums.others[k] >= 2 && abnormal(sums.within, k, constants::alpha_warn * share / 2) &&
          surely_abnormal(sums.within, k, constants::alpha_warn_heavy * share / 2, within_nodes_))
        worst.try_emplace(k);
    if (worst.empty()) return;
    for (const Test* t : c.tests) {
      const Nested by_node = nested_of(j_.entities, out_.populations[t->population], *t);
      if (!by_node.tells) continue;
      const auto losses = losses_within(by_node);
      for (auto& [k, of] : worst) {
        const auto at = place_in(*t, c.entities[k]);
        if (!at || by_node.others[*at] < 2 || known_.contains({t->population, t->members[*at]})) continue;
        if (!of || -by_node.off[*at] > of->deficit) of = make_within(*t, by_node, losses, *at);
      }
    }
    for (auto& [k, of] : worst) {
      if (!of || !noticeable(out_.populations[of->population], *of)) continue;
      of->combined = of->warn = true;
      of->p = std::min(1.0, 2 * family_p(sums.within, k) / share);
      add(*of);
    }
  }

  /// Devices that differ hide what all of a node have in common: the medians of the nodes differ less. A
  /// device that lacks less than half of its node's median has no part in it. Medians of many values
  /// have lighter tails than one metric.
  void screen_nodes(const Combined& c, const std::vector<std::vector<std::size_t>>& nodes, double share) {
    const auto& values = c.alike.empty() ? c.sums : c.story;
    std::vector<double> medians;
    for (const auto& devices : nodes) {
      std::vector<double> of;
      for (const auto k : devices) of.push_back(values[k]);
      medians.push_back(median(of));
    }
    const Abnormality a = abnormality(medians);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (a.score[i] > -2 || !abnormal(a, i, constants::alpha_warn * share) ||
          !surely_abnormal_story(a, i, constants::alpha_warn_heavy * share))
        continue;
      for (const auto k : nodes[i]) {
        if (values[k] > medians[i] / 2) continue;
        auto worst = worst_metric(c, k);
        if (!worst) continue;
        worst->p = std::min(1.0, family_p(a, i) / share);
        add_combined(*worst, surely_abnormal_story(a, i, constants::alpha_fail * share));
      }
    }
  }

  /// The metric in which an entity is worst against what that metric may be short of: by it it is named.
  std::optional<Suspect> worst_metric(const Combined& c, std::size_t k) const {
    std::optional<Suspect> worst;
    double excess = 0;
    for (const Test* test : c.tests) {
      const auto at = place_in(*test, c.entities[k]);
      if (!at) continue;
      const Suspect s = make(*test, test->members[*at]);
      if (!noticeable(out_.populations[test->population], s) || s.deficit / log_deficit(s.delta) <= excess)
        continue;
      excess = s.deficit / log_deficit(s.delta);
      worst = s;
    }
    return worst;
  }

  std::optional<std::size_t> place_in(const Test& t, std::int32_t entity) const {
    const auto& p = out_.populations[t.population];
    const auto at =
        std::lower_bound(t.members.begin(), t.members.end(), entity,
                         [&](std::size_t i, std::int32_t row) { return p.members[i].row->entity < row; });
    if (at == t.members.end() || p.members[*at].row->entity != entity) return std::nullopt;
    return static_cast<std::size_t>(at - t.members.begin());
  }

  void add_combined(Suspect s, bool sure) {
    const auto& p = out_.populations[s.population];
    s.combined = s.warn = true;
    s.sure = s.candidate = sure && p.tells(s.member, s.deficit) && s.deficit > log_deficit(s.delta) - p.se;
    add(s);
  }

  const Judgement& j_;
  Screening& out_;
  std::vector<Test> tests_, own_;
  Suites suites_, as_measured_;  ///< by what is left at equal clock, and by the rates
  TailPool pool_, among_nodes_, within_nodes_;
  double weights_ = 0;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> known_;
};

}  // namespace

Screening screen_populations(const Judgement& j) {
  Screening screening;
  AttributeCache attributes;
  for (const auto& s : j.series) {
    if (!is_population(s)) continue;
    for (auto& p : populations_of(j, s, attributes)) screening.populations.push_back(std::move(p));
  }
  Screener(j, screening).run();
  return screening;
}

}  // namespace assay::verdict
