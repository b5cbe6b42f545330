// SPDX-License-Identifier: Apache-2.0
// Parts of three kinds of rate or more, or a few that are much faster than all others: nobody is accused,
// because no side has most parts or what most have is in doubt, and yet they are not alike.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>

#include "base/units.hpp"
#include "measure/robust.hpp"
#include "measure/statistics.hpp"
#include "verdict/constants.hpp"
#include "verdict/peer_findings.hpp"

namespace assay::verdict {
namespace {

/// Members of equal rate, the slowest first.
struct Levels {
  std::vector<std::vector<std::size_t>> members;
  std::vector<double> residual;  ///< medians
  double range() const { return residual.empty() ? 0 : residual.back() - residual.front(); }
};

/// Whether neighbours are far enough apart for `deviation`, that of the parts of a level.
/// `beside`: a part that is slower still is known.
bool are_apart(const Levels& levels, double deviation, std::size_t parts, bool beside) {
  const double least = least_distance(parts, levels.members.size());
  // Two levels, and one part by itself, are told only by more than kinds of one model differ by. Among many,
  // one far from all others is a tail unless it is very far.
  const auto alone = [](const std::vector<std::size_t>& of) { return of.size() < 2; };
  const bool two = levels.members.size() == 2,
             any_alone = std::any_of(levels.members.begin(), levels.members.end(), alone);
  const bool many = parts >= constants::deletion_most;
  const auto singles = std::count_if(levels.members.begin(), levels.members.end(), alone);
  const bool few = !many && static_cast<std::ptrdiff_t>(levels.members.size()) - singles >= 2 && !two;
  for (std::size_t i = 1; i < levels.residual.size(); ++i) {
    // Two that are each by itself need not differ from each other, but from those that are alike.
    if (alone(levels.members[i]) && alone(levels.members[i - 1])) continue;
    const bool single = alone(levels.members[i]) || alone(levels.members[i - 1]);
    const double gap = log_deficit(many && (two || any_alone) ? constants::level_gross_deficit
                                   : few && single            ? constants::level_few_single
                                   : few                      ? constants::level_few_deficit
                                   : two && single && !beside ? constants::peers_small_deficit
                                   : single && beside         ? constants::peers_note_deficit
                                   : two                      ? constants::kind_gross_deficit
                                   : single                   ? constants::peers_note_deficit
                                                              : constants::kind_most_deficit);
    const double apart = levels.residual[i] - levels.residual[i - 1];
    if (apart < gap || apart < least * deviation) return false;
  }
  return true;
}

/// The most levels, up to four, that are apart; none where all parts may be alike.
Levels levels_of(const Population& p, bool beside) {
  constexpr std::size_t most = 4;
  const std::size_t least_parts = beside ? constants::deletion_min : constants::peers_min_population;
  const auto order = ascending(p);
  std::vector<double> sorted;
  for (const auto i : order) sorted.push_back(p.members[i].residual);
  if (p.size() < least_parts) return {};
  for (std::size_t count = std::min(most, p.size() - 2); count >= 2; --count) {
    auto edges = cluster_cuts(sorted, count);
    if (edges.size() + 1 < count) continue;
    edges.push_back(p.size());
    Levels levels;
    double squares = 0;
    std::size_t begin = 0;
    for (const auto end : edges) {
      const auto of = std::span(sorted).subspan(begin, end - begin);
      const double centre = median(of);
      for (const double x : of) squares += (x - centre) * (x - centre);
      levels.residual.push_back(centre);
      levels.members.emplace_back(order.begin() + static_cast<std::ptrdiff_t>(begin),
                                  order.begin() + static_cast<std::ptrdiff_t>(end));
      begin = end;
    }
    const double deviation = std::sqrt(squares / static_cast<double>(p.size() - count));
    if (are_apart(levels, std::max(deviation, p.se), p.size(), beside)) return levels;
  }
  return {};
}

void add_levels(Judgement& j, const Population& p, const Levels& levels, std::size_t metrics) {
  const Series& s = *p.series;
  const auto largest = static_cast<std::size_t>(
      std::max_element(levels.members.begin(), levels.members.end(),
                       [](const auto& a, const auto& b) { return a.size() < b.size(); }) -
      levels.members.begin());
  auto f = about_peers(j, p, -1, "WARN", "abnormality", "split");
  const auto rate = [&](std::size_t level) {
    std::vector<double> rates;
    for (const auto i : levels.members[level]) rates.push_back(p.members[i].rate);
    return from_log_rate(median(rates), s.better);
  };
  f.reference = rate(levels.members.size() - 1);
  f.value = rate(0);
  f.deficit = fraction(levels.range());
  f.action = "MONITOR";
  f.text = "cluster: " + s.full() + ": " + std::to_string(p.size()) + " parts are of " +
           std::to_string(levels.members.size()) + " different rates: ";
  std::vector<std::int32_t> rows;
  f.samples = 0;
  for (std::size_t level = levels.members.size(); level-- > 0;) {
    std::vector<std::string> names;
    for (const auto i : levels.members[level]) {
      names.push_back(j.entities.name(p.members[i].row->entity));
      *f.samples += p.members[i].row->n;
      if (level < largest) rows.push_back(p.members[i].row->entity);
    }
    f.text += std::to_string(names.size()) + " at " + format_quantity(rate(level), s.unit) +
              (level == largest ? "" : " (" + first_of(names) + ")") + (level > 0 ? ", " : "");
    if (level != largest) f.members.insert(f.members.end(), names.begin(), names.end());
  }
  f.controls = static_cast<std::int64_t>(levels.members[largest].size());
  f.text += "; peers do not show which is right: compare with a limit or a baseline";
  if (metrics > 1)
    f.text += "; and so in " +
              count(static_cast<std::int64_t>(metrics) - 1, "other metric", "other metrics") + " of " +
              s.suite;
  const bool shared = note_shared_cores(j, s, entities_of(p), f);
  const bool few_faster =
      rows.empty() && !may_be_all_that_is_sound(p.size() - levels.members[largest].size(), p.size());
  const bool open = !shared && too_far_for_kinds(p, levels.range()) && !few_faster;
  if (open && rows.empty())
    for (const auto i : levels.members[largest]) rows.push_back(p.members[i].row->entity);
  j.add(std::move(f), rows, open);
}

/// Parts without levels that differ so much that no fault of a usual size shows.
void add_spread(Judgement& j, const Population& p, double deviation, std::size_t metrics) {
  const Series& s = *p.series;
  const auto order = ascending(p);
  const auto value = [&](std::size_t at) { return from_log_rate(p.members[order[at]].rate, s.better); };
  const auto shown = [&](std::size_t at) {
    return j.entities.name(p.members[order[at]].row->entity) + " " + format_quantity(value(at), s.unit);
  };
  auto f = about_peers(j, p, -1, "WARN", "abnormality", "split");
  f.value = value(0);
  f.reference = value(order.size() / 2);
  f.deficit = fraction(p.members[order[order.size() / 2]].rate - p.members[order.front()].rate);
  f.action = "MONITOR";
  f.text = "cluster: " + s.full() + ": " + std::to_string(p.size()) +
           " parts that should be equal differ, half of " + "them by more than " +
           percent(fraction(normal_quantile(0.75) * deviation)) +
           " from the median: peers do not show a fault smaller than about " +
           percent(fraction(3 * deviation)) + "; slowest " + shown(0) + ", median " +
           format_quantity(*f.reference, s.unit) + ", fastest " + shown(order.size() - 1) +
           "; compare with a limit or a baseline";
  if (metrics > 1)
    f.text += "; and so in " +
              count(static_cast<std::int64_t>(metrics) - 1, "other metric", "other metrics") + " of " +
              s.suite;
  j.add(std::move(f), {});
}

/// The widest of each suite.
void judge_spread(Judgement& j, const std::vector<const Population*>& populations) {
  struct Widest {
    const Population* population = nullptr;
    double deviation = 0;
    std::size_t metrics = 0;
  };
  std::map<std::string, Widest> by_suite;
  for (const auto* p : populations) {
    if (p->split.found || p->size() < constants::peers_min_population) continue;
    std::vector<double> residuals;
    for (const auto& m : p->members) residuals.push_back(m.residual);
    const double deviation = mad_sigma(residuals);
    if (deviation < log_deficit(constants::spread_warn) || deviation < 4 * p->se) continue;
    auto& widest = by_suite[p->series->suite];
    ++widest.metrics;
    if (deviation > widest.deviation) {
      widest.population = p;
      widest.deviation = deviation;
    }
  }
  for (const auto& [suite, widest] : by_suite)
    add_spread(j, *widest.population, widest.deviation, widest.metrics);
}

}  // namespace

void judge_levels(Judgement& j, const std::vector<const Population*>& unsuspected,
                  const std::vector<Population>& beside_suspects) {
  std::set<std::string> told;
  for (const auto& found : j.found)
    if (found.finding.severity != "INFO" && found.finding.reference_kind == "peers")
      told.insert(found.finding.metric);
  struct Widest {
    const Population* population = nullptr;
    Levels levels;
    std::size_t metrics = 0;
  };
  std::map<std::string, Widest> by_suite;
  std::vector<const Population*> without_levels;
  const auto look_at = [&](const Population& p, bool beside) {
    const bool noted = is_noted_split(p);
    if (p.shared || (p.split.found && p.split.apart && !noted)) return;
    auto levels = levels_of(p, beside);
    if (noted && levels.members.size() < 3) return;
    if (levels.members.empty()) return without_levels.push_back(&p);
    auto& widest = by_suite[p.series->suite];
    ++widest.metrics;
    if (widest.population == nullptr || levels.range() > widest.levels.range()) {
      widest.population = &p;
      widest.levels = std::move(levels);
    }
  };
  for (const auto* p : unsuspected)
    if (!told.contains(p->series->full())) look_at(*p, false);
  judge_spread(j, without_levels);
  for (const auto& p : beside_suspects) look_at(p, true);
  for (const auto& [suite, widest] : by_suite)
    add_levels(j, *widest.population, widest.levels, widest.metrics);
}

}  // namespace assay::verdict
