// SPDX-License-Identifier: Apache-2.0
#include "verdict/collectives.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/units.hpp"
#include "measure/robust.hpp"
#include "measure/statistics.hpp"
#include "verdict/collective_groups.hpp"
#include "verdict/collectives_many.hpp"
#include "verdict/constants.hpp"
#include "verdict/network_constants.hpp"
#include "verdict/network_levels.hpp"
#include "verdict/network_links.hpp"
#include "verdict/population.hpp"
#include "verdict/retest/candidates.hpp"

namespace assay::verdict {
namespace {

/// Draws of groups that a case holds, as scores of nodes, or of devices where each rail has groups of its
/// own.
struct GroupScores {
  std::vector<std::int32_t> units;  ///< rows of /entities
  std::vector<std::vector<double>>
      values;  ///< by unit: log rate of its group in each draw, less the draw's better groups
  std::vector<std::int64_t> samples;  ///< by unit
  std::vector<double> centres;        ///< by unit: median log rate of the better groups of its draws
};

bool in_groups(const Series& s) {
  return s.kind == "device" && s.stage == "groups" && s.judged && s.per_sample && s.first != nullptr &&
         s.unit == "B/s" && s.first->find("group") != nullptr;
}

GroupScores scores_of(const Judgement& j, const Series& s, bool retest) {
  const auto draws = draws_of(j, s, retest);
  const int rails = rails_of(*s.first);
  std::map<std::int32_t, std::vector<double>> values, centres;
  std::map<std::int32_t, std::int64_t> samples;
  GroupScores scores;
  for (const auto& draw : draws) {
    std::map<int, double> rate;
    std::map<int, std::vector<double>> rates;
    for (const auto& [group, of] : draw.rates) rates[group % rails].push_back(rate[group] = median(of));
    for (const auto& [group, units] : draw.units) {
      const auto& beside = rates[group % rails];
      if (beside.size() < 2) continue;
      // The upper half of the groups has none of a few slow members even where they are in most groups.
      const double centre = network::upper(beside);
      for (const auto unit : units) {
        centres[unit].push_back(centre);
        values[unit].push_back(rate[group] - centre);
        samples[unit] +=
            static_cast<std::int64_t>(draw.rates.at(group).size() / std::max<std::size_t>(1, units.size()));
      }
    }
  }
  for (auto& [unit, v] : values) {
    scores.units.push_back(unit);
    scores.values.push_back(std::move(v));
    scores.centres.push_back(median(centres[unit]));
    scores.samples.push_back(samples[unit]);
  }
  return scores;
}

/// A node or device is as good as the best of its groups.
double best(const std::vector<double>& values) { return *std::max_element(values.begin(), values.end()); }

struct SlowUnit {
  std::int32_t row = -1;
  std::vector<std::int32_t> devices;  ///< a node all of whose devices are slow: these
  double deficit = 0, p = 1;
  double reference = 0;  ///< log rate that the deficit is from
  std::int64_t samples = 0;
  bool alone = false;
};

/// Nodes or devices all of whose groups are slow, if they are few. Several that were always together cannot
/// be told apart. What is left out here is looked at by collectives_many.cpp.
std::vector<SlowUnit> slow_units(const GroupScores& scores, std::size_t tests) {
  std::vector<double> bests;
  std::vector<std::size_t> judged;  // units that were drawn often enough
  for (std::size_t i = 0; i < scores.values.size(); ++i) {
    if (scores.values[i].size() < constants::collective_draws) continue;
    bests.push_back(best(scores.values[i]));
    judged.push_back(i);
  }
  std::vector<SlowUnit> found;
  if (bests.size() < constants::collective_nodes) return found;
  const auto add = [&](std::size_t k, double deficit, double p) {
    const std::size_t i = judged[k];
    const double reference = scores.centres[i] + bests[k] + deficit;
    found.push_back({scores.units[i], {}, deficit, p, reference, scores.samples[i], true});
  };
  const double alpha = constants::network_alpha_warn / static_cast<double>(std::max<std::size_t>(1, tests));
  if (bests.size() >= constants::network_robust_population) {
    for (const auto& low : network::low_outliers(bests, alpha))
      if (low.deficit >= constants::network_fail)
        add(low.index, low.deficit, low.p_adjusted * static_cast<double>(tests));
  } else {
    const double slow = -std::log1p(-constants::peers_small_deficit), centre = network::upper(bests);
    for (std::size_t i = 0; i < bests.size(); ++i)
      if (centre - bests[i] >= slow) add(i, centre - bests[i], results::not_taken);
  }
  if (found.size() > bests.size() / 4) found.clear();
  for (auto& a : found)
    for (const auto& b : found) {
      if (a.row == b.row) continue;
      const auto of = [&](std::int32_t row) {
        const auto at = std::find(scores.units.begin(), scores.units.end(), row) - scores.units.begin();
        return scores.values[static_cast<std::size_t>(at)];
      };
      if (of(a.row) == of(b.row)) a.alone = false;
    }
  std::erase_if(found, [](const SlowUnit& s) { return !s.alone; });
  return found;
}

/// Whether new groups of the node are slow too, by how much at least; beside the nodes that are no
/// candidates, where these are enough.
struct GroupRetest {
  bool measured = false;
  double deficit = 0, low = 0;
  double reference = 0;  ///< log rate that the deficit is from
  std::size_t controls = 0;
};
GroupRetest judge_groups(const GroupScores& retest, std::int32_t node,
                         const std::vector<SlowUnit>& candidates) {
  GroupRetest a;
  std::vector<double> others, controls;
  double own = results::not_taken, centre = 0;
  for (std::size_t i = 0; i < retest.units.size(); ++i) {
    if (retest.values[i].size() < 2) continue;
    const double score = best(retest.values[i]);
    if (retest.units[i] == node) {
      own = score;
      centre = retest.centres[i];
      continue;
    }
    others.push_back(score);
    if (std::ranges::none_of(candidates, [&](const auto& c) { return c.row == retest.units[i]; }))
      controls.push_back(score);
  }
  if (controls.size() + 1 >= constants::collective_nodes) others = controls;
  if (std::isnan(own) || others.size() + 1 < constants::collective_nodes) return a;
  const double n = static_cast<double>(others.size()),
               spread = std::max(mad_sigma(others), constants::network_spread_floor);
  const double se = spread * std::sqrt(1 + 1.5708 / n);
  a.measured = true;
  a.controls = others.size();
  a.deficit = median(others) - own;
  a.reference = centre + median(others);
  a.low = a.deficit - t_quantile(1 - constants::network_alpha_retest /
                                         static_cast<double>(std::max<std::size_t>(1, candidates.size())),
                                 n - 1) *
                          se;
  return a;
}

std::vector<const Series*> group_series(const Judgement& j) {
  std::vector<const Series*> found;
  for (const auto& s : j.series)
    if (in_groups(s)) found.push_back(&s);
  // Devices before nodes: the finer one says more.
  std::stable_sort(found.begin(), found.end(),
                   [](const Series* a, const Series* b) { return unit_of(*a) > unit_of(*b); });
  return found;
}

/// Nodes that have a finding about their links already, or are below a switch that has one.
std::set<std::int32_t> named_by_links(const Judgement& j) {
  const network::Places places(j);
  std::set<std::int32_t> named, switches;
  for (const auto& f : j.found) {
    if (f.finding.severity == "INFO" || (f.finding.kind != "slow" && f.finding.kind != "split")) continue;
    const Series* s = series_of(j, f.finding);
    if (s == nullptr || !s->is_of(results::MetricClass::link)) continue;
    for (const auto row : f.rows)
      if (j.entities.node(row) >= 0)
        named.insert(j.entities.node(row));
      else
        switches.insert(row);
  }
  for (const auto node : j.entities.nodes())
    if (switches.contains(places.switch_of(node))) named.insert(node);
  return named;
}

/// Whether links between nodes were measured of this one.
bool has_pairs(const Judgement& j, std::int32_t part) {
  const auto node = j.entities.node(part);
  return std::any_of(j.series.begin(), j.series.end(), [&](const Series& s) {
    return s.kind == "link" && s.judged && !s.is_of(results::MetricClass::storage) &&
           std::any_of(s.rows.begin(), s.rows.end(), [&](const SeriesRow& row) {
             const auto from = j.entities.node(row.source), to = j.entities.node(row.destination);
             return from != to && (from == node || to == node);
           });
  });
}

bool confirms(const GroupRetest& a, const SlowUnit& slow) {
  return a.measured && a.low > 0 &&
         a.deficit >= std::max(log_deficit(constants::network_fail), slow.deficit / 2);
}

results::Finding finding_of(const Judgement& j, const Series& s, const GroupScores& scores,
                            const SlowUnit& slow, const GroupRetest& a) {
  const bool confirmed = confirms(a, slow);
  const double deficit = confirmed ? a.deficit : slow.deficit;
  auto f = j.about(s, slow.row, a.measured && !confirmed ? "INFO" : "WARN", "abnormality", "slow");
  const double reference = confirmed ? a.reference : slow.reference;
  f.reference = std::exp(reference);
  f.value = std::exp(reference - deficit);
  f.reference_kind = "peers";
  f.deficit = -std::expm1(-deficit);
  if (confirmed) f.ci_low = -std::expm1(-a.low);
  f.samples = slow.samples;
  f.controls = static_cast<std::int64_t>(scores.units.size()) - 1;
  f.confirm(confirmed ? "retest" : "");
  if (!std::isnan(slow.p)) f.p_adjusted = std::min(1.0, slow.p);
  f.action = "TRIAGE";
  const bool imported = s.is_imported();
  f.text = f.name + ": all its " + (imported ? "" : "random ") + "groups are slow in " + s.full() + ", " +
           format_quantity(*f.value, s.unit) + " against " + format_quantity(*f.reference, s.unit) +
           ", deficit " + percent(*f.deficit) + " (n=" + std::to_string(slow.samples) + ")" +
           (slow.devices.empty() ? "" : ", on all its rails") +
           (has_pairs(j, slow.row) ? ", its pairs are not" : "") +
           (confirmed    ? ", confirmed by new groups"
            : a.measured ? ", not slow in new groups"
                         : ", not confirmed");
  return f;
}

/// Slow devices that are all their node has there are the node: the least slow of them stands for it.
std::vector<SlowUnit> by_node(const Judgement& j, const GroupScores& scores, std::vector<SlowUnit> slow) {
  std::map<std::int32_t, std::size_t> measured;
  for (const auto row : scores.units) ++measured[j.entities.node(row)];
  std::map<std::int32_t, std::vector<SlowUnit>> of;
  for (const auto& s : slow) of[j.entities.node(s.row)].push_back(s);
  std::vector<SlowUnit> out;
  for (auto& [node, own] : of) {
    if (own.size() < 2 || own.size() < measured[node]) {
      out.insert(out.end(), own.begin(), own.end());
      continue;
    }
    SlowUnit whole = *std::min_element(own.begin(), own.end(),
                                       [](const auto& a, const auto& b) { return a.deficit < b.deficit; });
    for (const auto& s : own) whole.devices.push_back(s.row);
    whole.row = node;
    out.push_back(std::move(whole));
  }
  return out;
}

/// Parts whose node, or which themselves, were in enough groups are compared.
void mark_compared(const Judgement& j, Series& s) {
  const auto scores = scores_of(j, s, false);
  std::set<std::int32_t> often;
  for (std::size_t i = 0; i < scores.units.size(); ++i)
    if (scores.values[i].size() >= constants::collective_draws) often.insert(scores.units[i]);
  if (often.size() < constants::collective_nodes) return;
  for (auto& row : s.rows)
    if (often.contains(unit_of(s) == Unit::device ? row.entity : j.entities.node(row.entity)))
      row.reference = std::max<std::uint8_t>(row.reference, Reference::peers);
}

}  // namespace

void judge_collectives(Judgement& j) {
  const auto series = group_series(j);
  if (series.empty()) return;
  auto named = named_by_links(j);
  for (auto& s : j.series)
    if (in_groups(s)) mark_compared(j, s);
  bool told = false;
  std::set<std::int32_t> noted;  // what another size says of them is no new note
  for (const auto* s : series) {
    if (judge_slow_switch(j, *s, named)) continue;
    const auto scores = scores_of(j, *s, false);
    const auto slow = slow_units(scores, series.size());
    const auto retest = scores_of(j, *s, true);
    std::set<std::int32_t> here;
    for (const auto& one : by_node(j, scores, slow)) {
      // One finding for each node: the other sizes say the same.
      const auto node = j.entities.node(one.row);
      if (named.contains(node)) continue;
      const auto asked = one.devices.empty() ? std::vector{one.row} : one.devices;
      GroupRetest a;
      for (const auto row : asked) {
        const auto own = judge_groups(retest, row, slow);
        if (row == asked.front() || !own.measured || own.low < a.low) a = own;
      }
      auto f = finding_of(j, *s, scores, one, a);
      // What is not confirmed may still be one of many.
      if (f.severity != "INFO")
        here.insert(node);
      else if (!noted.insert(node).second)
        continue;
      j.add(std::move(f), asked);
    }
    named.insert(here.begin(), here.end());
    judge_many(j, *s, named, noted, told);
  }
}

std::vector<Retest> collective_retests(const Judgement& j) {
  std::vector<Retest> asked;
  const auto series = group_series(j);
  // What new groups of one size clear may be slow in any other one.
  std::set<std::int32_t> known, cleared;
  for (const auto* s : series) {
    const auto scores = scores_of(j, *s, false), retest = scores_of(j, *s, true);
    const auto slow = slow_units(scores, series.size());
    std::set<std::int32_t> suspects;
    for (const auto& one : slow) {
      if (!known.contains(j.entities.node(one.row))) suspects.insert(one.row);
      const auto a = judge_groups(retest, one.row, slow);
      if (a.measured && !confirms(a, one)) cleared.insert(j.entities.node(one.row));
    }
    const auto many = many_slow(j, *s, known, false);
    const bool none_left = !retest.units.empty() && !many_slow(j, *s, known, true).any();
    for (const auto& rows : {many.named, many.open}) {
      suspects.insert(rows.begin(), rows.end());
      for (const auto row : rows)
        if (none_left) cleared.insert(j.entities.node(row));
    }
    for (const auto row : suspects)
      if (!cleared.contains(j.entities.node(row))) known.insert(j.entities.node(row));
    if (suspects.empty() || !retest.units.empty()) continue;
    Retest r = next_retest(j, s->suite, s->name, s->metric);
    for (const auto& row : s->rows) {
      const auto unit = unit_of(*s) == Unit::device ? row.entity : j.entities.node(row.entity);
      (suspects.contains(unit) ? r.candidates : r.controls).push_back(row.entity);
    }
    asked.push_back(std::move(r));
  }
  return asked;
}

}  // namespace assay::verdict
