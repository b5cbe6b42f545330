// SPDX-License-Identifier: Apache-2.0
// Entities against their peers: suspects of the screening, the result of their retest, and one finding for
// each story.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "measure/statistics.hpp"
#include "verdict/constants.hpp"
#include "verdict/counter_totals.hpp"
#include "verdict/peer_findings.hpp"
#include "verdict/retest/candidates.hpp"

namespace assay::verdict {
namespace {

/// Entities, and the series during whose screening their clocks were held down.
using Throttled = std::set<std::pair<std::int32_t, std::string>>;

Throttled throttled_series(const Judgement& j) {
  // GPUs whose driver tells the hardware's own throttling from that for all thermal reasons.
  std::set<std::int32_t> told_apart;
  for (const auto& c : j.results.counters)
    if (c.counter == hardware_thermal && !std::isnan(c.before)) told_apart.insert(c.entity);
  Throttled found;
  for (const auto& c : j.results.counters)
    if (c.after > c.before && is_throttling(c.counter) && retest_number(c.case_path) == 0 &&
        !(c.counter == all_thermal && told_apart.contains(c.entity)))
      found.emplace(c.entity, base_name(c.case_path));
  return found;
}

class Peers {
 public:
  explicit Peers(Judgement& j) : j_(j), screening_(screen_populations(j)) {
    for (const Population& p : screening_.populations) tests_ += p.size();
  }

  void judge() {
    mark_references();
    candidates_ = candidates_of(j_, screening_).named.size();
    const auto unsuspected = split_unsuspected();
    const std::size_t splits = j_.found.size();
    Screening beside;
    beside.populations = beside_suspects();
    for (const Screening* s : {&std::as_const(screening_), &std::as_const(beside)})
      for (const auto& story : split_stories(*s))
        add_split_finding(j_, s->populations[story.front()], story.size());
    judge_levels(j_, unsuspected, beside.populations);
    drop_noted_splits(splits);
    judge_suspects();
    for (const auto& [index, cases] : retests_)
      for (const auto& control :
           slow_controls(screening_.populations[index], cases, suspected_rows(screening_, index)))
        add_control_finding(j_, screening_.populations[index], control);
    j_.expected_false_fails += screening_.budget;
  }

 private:
  const Population& population(const Suspect& s) const { return screening_.populations[s.population]; }
  const SeriesRow& row_of(const Suspect& s) const { return *population(s).members[s.member].row; }

  /// A part alone in its group has no peers.
  void mark_references() {
    for (auto& s : j_.series) {
      if (!is_population(s)) continue;
      std::vector<std::size_t> parts(peer_groups(s), 0);
      for (const auto& row : s.rows)
        if (!std::isnan(log_rate(row.median, s.better))) ++parts[peer_group(j_, s, row)];
      for (auto& row : s.rows)
        if (parts[peer_group(j_, s, row)] > 1)
          row.reference = std::max<std::uint8_t>(row.reference, Reference::peers);
    }
  }

  /// Of few parts half may be slow without one that stands out but by its size.
  std::vector<const Population*> split_unsuspected() {
    std::vector<const Population*> unsuspected;
    std::set<std::size_t> suspected;
    std::set<std::string> suites;
    for (const auto& s : screening_.suspects)
      if (!s.note && !s.by_size) {
        suspected.insert(s.population);
        suites.insert(population(s).series->suite);
      }
    for (std::size_t i = 0; i < screening_.populations.size(); ++i) {
      auto& p = screening_.populations[i];
      if (suspected.contains(i)) continue;
      find_split_of_few(j_, p);
      if (!suites.contains(p.series->suite)) find_split_by_clock(j_, p);
      unsuspected.push_back(&p);
    }
    return unsuspected;
  }

  /// Levels say more than the two sides that they make.
  void drop_noted_splits(std::size_t from) {
    std::set<std::string> warned;
    const auto split = [](const Found& f) { return f.finding.kind == "split"; };
    for (std::size_t i = from; i < j_.found.size(); ++i)
      if (split(j_.found[i]) && j_.found[i].finding.severity == "WARN")
        warned.insert(j_.found[i].finding.suite);
    const auto begin = j_.found.begin() + static_cast<std::ptrdiff_t>(from);
    j_.found.erase(std::remove_if(begin, j_.found.end(),
                                  [&](const Found& f) {
                                    return split(f) && f.finding.severity == "INFO" &&
                                           warned.contains(f.finding.suite);
                                  }),
                   j_.found.end());
  }

  /// Those beside the suspects: that some are slower still does not make the others alike.
  std::vector<Population> beside_suspects() const {
    std::map<std::size_t, std::set<std::size_t>> members;
    for (const auto& s : screening_.suspects)
      if (!s.note && !s.by_size) members[s.population].insert(s.member);
    std::vector<Population> rest;
    for (const auto& [index, suspects] : members) {
      Population p = screening_.populations[index];
      if (p.split.found && p.split.apart) continue;
      p.split = {};
      for (auto member = suspects.rbegin(); member != suspects.rend(); ++member)
        p.members.erase(p.members.begin() + static_cast<std::ptrdiff_t>(*member));
      find_split_of_rest(j_, p);
      rest.push_back(std::move(p));
    }
    return rest;
  }

  const std::vector<RetestCase>& retest(std::size_t index) {
    const auto [it, first] = retests_.try_emplace(index);
    if (first) it->second = retest_cases(j_, screening_.populations[index]);
    return it->second;
  }

  /// Correlated metrics of one suite tell one story, led by the worst, which is measured again first.
  struct Story {
    const Suspect* lead = nullptr;
    std::vector<const Suspect*> told;  ///< that are more than a note if no retest refutes them
    std::size_t metrics = 0, candidates = 0;
    double p = 1;
  };

  std::map<std::pair<std::int32_t, std::string>, Story> stories() const {
    std::map<std::pair<std::int32_t, std::string>, Story> found;
    for (const auto& s : screening_.suspects) {
      if (died_in_retest(j_, population(s).series->suite, row_of(s).entity)) continue;
      auto& story = found[{row_of(s).entity, population(s).series->suite}];
      ++story.metrics;
      story.p = std::min(story.p, s.p);
      story.candidates += s.candidate ? 1 : 0;
      if (s.candidate || s.warn) story.told.push_back(&s);
      const auto key = [&](const Suspect& x) {
        return std::tuple(x.sure, x.candidate, !x.note, x.siblings == 0, rank_of(screening_, x));
      };
      if (story.lead == nullptr || key(s) > key(*story.lead)) story.lead = &s;
    }
    return found;
  }

  /// By its lead. Where the retest refuted that, another metric can say worse; the error that the part may
  /// have is divided among its candidates then.
  PeerFinding judged(const Story& story) {
    const auto weight = [](const PeerFinding& f) { return f.fail ? 2 : is_note(f) ? 0 : 1; };
    PeerFinding worst = judged(story.lead, story.metrics, story.p, candidates_);
    if (!worst.retest.refuted) return worst;
    for (const Suspect* s : story.told) {
      if (worst.fail) break;
      if (s == story.lead) continue;
      PeerFinding f = judged(s, story.metrics - 1, s->p, candidates_ * story.candidates);
      if (weight(f) > weight(worst)) worst = std::move(f);
    }
    return worst;
  }

  void judge_suspects() {
    ByNode by_node;
    for (const auto& [key, story] : stories())
      by_node[{j_.entities.node(key.first), key.second}].push_back(judged(story));
    tell_few_nodes(by_node);
    join_metrics(by_node);
    std::map<Group, std::vector<PeerFinding>> groups;
    for (auto& [key, findings] : by_node)
      for (auto& f : findings) groups[group_of(f)].push_back(std::move(f));
    by_node.clear();
    for (auto& [key, group] : groups) {
      if (key.first != no_group &&
          group.size() >= (key.second == Company::spared ? 2 : constants::majority_min)) {
        add_group_finding(j_, group);
        continue;
      }
      for (auto& f : group) {
        const auto& p = *f.population;
        by_node[{j_.entities.node(p.members[f.member].row->entity), p.series->suite}].push_back(std::move(f));
      }
    }
    for (auto& [key, findings] : by_node) {
      if (is_node_story(key.first, findings) && stand_alike(findings)) {
        add_node_finding(j_, key.first, findings);
      } else {
        for (const auto& f : findings) add_peer_finding(j_, f);
      }
    }
  }

  using ByNode = std::map<std::pair<std::int32_t, std::string>, std::vector<PeerFinding>>;  ///< node, suite

  /// Nodes of which all parts fail are told as nodes, whatever else is slow, while a reader can act on each.
  void tell_few_nodes(ByNode& by_node) {
    constexpr std::size_t few = 8;
    const auto whole = [&](const ByNode::value_type& of) {
      return is_node_story(of.first.first, of.second) &&
             std::all_of(of.second.begin(), of.second.end(), [](const PeerFinding& f) { return f.fail; });
    };
    if (static_cast<std::size_t>(std::count_if(by_node.begin(), by_node.end(), whole)) > few) return;
    for (auto it = by_node.begin(); it != by_node.end();) {
      if (!whole(*it)) {
        ++it;
        continue;
      }
      add_node_finding(j_, it->first.first, it->second);
      it = by_node.erase(it);
    }
  }

  /// Parts that are slow together are one finding, those that are told to be faulty apart from those that are
  /// not.
  enum class Company { failed, open, spared, within };
  /// Population; of those spared and of those that are slow within their node, the first of those joined.
  using Group = std::pair<std::size_t, Company>;
  static constexpr std::size_t no_group = ~std::size_t{0};
  Group group_of(const PeerFinding& f) const {
    const auto& split = f.population->split;
    const auto index = static_cast<std::size_t>(f.population - screening_.populations.data());
    const bool together = split.found && !split.apart && f.population->members[f.member].low;
    if (f.suspect.spared && !split.apart) return {first_joined(index), Company::spared};
    if (f.suspect.siblings > 0) return {first_joined(index), Company::within};
    if (!together || f.intermittent) return {no_group, Company::open};
    return {index, f.fail ? Company::failed : Company::open};
  }

  /// Each of them is told by its worst metric, which is another one for each by chance: metrics in which one
  /// of them is slow by half as much as in that belong together.
  void join_metrics(const ByNode& by_node) {
    joined_.resize(screening_.populations.size());
    std::iota(joined_.begin(), joined_.end(), std::size_t{0});
    for (const auto& [key, findings] : by_node)
      for (const auto& f : findings) {
        if (!f.suspect.spared && f.suspect.siblings == 0) continue;
        const auto entity = row_of(f.suspect).entity;
        for (std::size_t i = 0; i < joined_.size(); ++i) {
          const Population& p = screening_.populations[i];
          if (i == f.suspect.population || !alike(p, *f.population)) continue;
          const auto at =
              std::ranges::lower_bound(p.members, entity, {}, [](const Member& m) { return m.row->entity; });
          if (at == p.members.end() || at->row->entity != entity) continue;
          const auto member = static_cast<std::size_t>(at - p.members.begin());
          // What a part lacks of its node is not looked up: those are one story of the suite.
          if (f.suspect.siblings > 0 || p.residual_deficit(member) >= f.suspect.deficit / 2)
            join(i, f.suspect.population);
        }
      }
  }
  void join(std::size_t a, std::size_t b) {
    a = first_joined(a), b = first_joined(b);
    joined_[std::max(a, b)] = std::min(a, b);
  }
  std::size_t first_joined(std::size_t index) const {
    while (joined_[index] != index) index = joined_[index];
    return index;
  }
  static bool alike(const Population& a, const Population& b) {
    const auto stratum = [](const Population& p) -> const std::string& {
      return p.series->strata[static_cast<std::size_t>(p.stratum)];
    };
    return a.series->suite == b.series->suite && a.series->kind == b.series->kind && a.shared == b.shared &&
           stratum(a) == stratum(b);
  }

  /// All parts of a node of one kind and model, two or more, are slow: it is the node.
  bool is_node_story(std::int32_t node, const std::vector<PeerFinding>& findings) const {
    if (node < 0 || findings.size() < 2) return false;
    const Population& of = *findings.front().population;
    std::set<std::int32_t> slow, parts;
    for (const auto& f : findings) {
      if (&f != &findings.front() && !alike(*f.population, of)) return false;
      slow.insert(row_of(f.suspect).entity);
    }
    for (const auto& m : of.members)
      if (j_.entities.node(m.row->entity) == node) parts.insert(m.row->entity);
    return parts == slow;
  }

  /// A part that is not confirmed, or was slow for a while only, is not told with those that fail.
  static bool stand_alike(const std::vector<PeerFinding>& findings) {
    return std::ranges::all_of(findings, [&](const PeerFinding& f) {
      return f.fail == findings.front().fail && f.intermittent == findings.front().intermittent &&
             !f.suspect.note;
    });
  }

  PeerFinding judged(const Suspect* s, std::size_t metrics, double p, std::size_t candidates) {
    PeerFinding f;
    f.population = &population(*s);
    f.member = s->member;
    f.suspect = *s;
    f.metrics = metrics;
    f.p = p;
    const auto entity = row_of(*s).entity;
    // Controls are no measure of what a part lacks of its node.
    if (s->siblings == 0)
      f.retest = judge_retest(*f.population, retest(s->population), entity, s->at_clock,
                              suspected_rows(screening_, s->population), candidates);
    const Population& p_of = *f.population;
    const Lasting lasting = lasting_of(j_, *p_of.series, entity, [&](double value) {
      return p_of.reference(s->member) - log_rate(value, p_of.series->better) > log_deficit(s->delta);
    });
    f.lasting_blocks = lasting.blocks;
    f.lasting_s = lasting.span_s;
    f.throttle_counted = throttle_counted(*p_of.series, entity);
    const bool retest_says = f.retest.measured && f.retest.confirmed;
    // Slow while it was screened and not now: only what lasted then, or what a counter saw, is held against
    // it.
    const bool lasted = lasting.enough() &&
                        s->deficit - constants::interval_z * p_of.se_of(s->member) > log_deficit(s->delta) &&
                        lasting.more_than(usual_share(s->population, s->delta), tests_);
    const bool then = p_of.eligible() && (lasted || (f.throttle_counted && s->kind == "throttled"));
    f.intermittent = f.retest.measured && f.retest.refuted;
    f.fail = s->sure && (retest_says || (then && (!f.retest.measured || f.intermittent)));
    const double shown = f.retest.measured && !f.intermittent ? f.retest.deficit : s->deficit;
    if (j_.results.info.level == "smoke" && fraction(shown) <= constants::coarse_deficit) {
      f.coarse = f.fail;
      f.fail = false;
    }
    return f;
  }

  /// Whether the clocks of a part, or of its node, were held down while a series was screened.
  bool throttle_counted(const Series& s, std::int32_t row) {
    if (!throttled_) throttled_ = throttled_series(j_);
    const std::string path = s.suite + "/" + s.name;
    return throttled_->contains({row, path}) || throttled_->contains({j_.entities.node(row), path});
  }

  double usual_share(std::size_t index, double delta) {
    const auto [it, first] = usual_shares_.try_emplace({index, delta});
    if (first)
      it->second = usual_share_beyond(j_, screening_.populations[index], log_deficit(delta),
                                      suspected_rows(screening_, index));
    return it->second;
  }

  Judgement& j_;
  Screening screening_;
  std::map<std::pair<std::size_t, double>, double> usual_shares_;
  std::optional<Throttled> throttled_;  ///< read from all counters for the first suspect
  std::size_t tests_ = 0;               ///< parts times metrics
  std::map<std::size_t, std::vector<RetestCase>> retests_;
  std::size_t candidates_ = 0;       ///< parts that may be measured again
  std::vector<std::size_t> joined_;  ///< by population: an earlier one of the same story, or itself
};

}  // namespace

void judge_peers(Judgement& j) {
  const std::size_t before = j.found.size();
  Peers(j).judge();
  // Parts that are told here need no finding of small populations too, unless that says more.
  const auto key = [](const Found& f) { return std::pair(f.finding.metric, f.finding.name); };
  const auto grade = [](const Found& f) {
    if (f.finding.severity == "FAIL") return 3;
    return f.inconclusive ? 2 : f.finding.severity == "WARN" ? 1 : 0;
  };
  const auto of_few = [&](const Found& f) {
    return f.finding.reference_kind == "peers" && f.finding.level != "link";
  };
  const auto end = j.found.begin() + static_cast<std::ptrdiff_t>(before);
  std::map<std::pair<std::string, std::string>, int> said;
  std::set<std::pair<std::string, std::string>> told;
  std::for_each(j.found.begin(), end, [&](const Found& f) {
    if (of_few(f)) said[key(f)] = std::max(said[key(f)], grade(f));
  });
  const auto says_less = [&](const Found& f) {
    const auto at = said.find(key(f));
    return at != said.end() && grade(f) < at->second;
  };
  j.found.erase(std::remove_if(end, j.found.end(), says_less), j.found.end());
  for (std::size_t i = before; i < j.found.size(); ++i) told.insert(key(j.found[i]));
  j.found.erase(std::remove_if(j.found.begin(), j.found.begin() + static_cast<std::ptrdiff_t>(before),
                               [&](const Found& f) { return of_few(f) && told.contains(key(f)); }),
                j.found.begin() + static_cast<std::ptrdiff_t>(before));
}

}  // namespace assay::verdict
