// SPDX-License-Identifier: Apache-2.0
// Two populations in one: where the cut is, what the slow side has in common, and whether it may be healthy.
#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "measure/statistics.hpp"
#include "verdict/constants.hpp"
#include "verdict/nested.hpp"
#include "verdict/peer_findings.hpp"
#include "verdict/population.hpp"

namespace assay::verdict {
namespace {

/// The recorded attribute that the low side has and the high side has not. Configuration comes before a place
/// that says the same.
void explain(Population& p, const std::vector<Attribute>& attributes) {
  auto& s = p.split;
  std::size_t tried = 0;
  for (const auto& a : attributes) tried += a.values.size();
  for (const auto& a : attributes) {
    std::vector<std::size_t> low(a.values.size()), high(a.values.size());
    for (std::size_t i = 0; i < p.size(); ++i) {
      if (a.of[i] >= 0) ++(p.members[i].low ? low : high)[static_cast<std::size_t>(a.of[i])];
    }
    const bool place = is_place(a.name);
    for (std::size_t v = 0; v < a.values.size(); ++v) {
      // It must cover nearly all of the slow and few of the others, or it explains nothing. Neither does a
      // configuration with which most parts are as they should be: one of eight slots is few of the others.
      if (10 * low[v] < 8 * s.split.low || 10 * high[v] > 2 * s.split.high) continue;
      if (!place && low[v] < high[v]) continue;
      const double chance =
          fisher_p(low[v], s.split.low, low[v] + high[v], p.size()) * static_cast<double>(tried);
      if (chance > (place ? constants::explain_place_p : constants::explain_p)) continue;
      if (!s.attribute.empty() && std::pair(place, chance) >= std::pair(s.place, s.p)) continue;
      s.p = chance;
      s.attribute = a.name;
      s.value = a.values[v];
      s.place = place;
      s.with_low = low[v];
      s.with_high = high[v];
    }
  }
}

/// Width of the tighter one of the two middle quarters, as a deviation: one of them is within a core that is
/// most of these values.
double quick_deviation(std::span<const double> sorted) {
  const auto at = [&](double q) {
    return sorted[static_cast<std::size_t>(q * static_cast<double>(sorted.size() - 1))];
  };
  return std::min(at(0.5) - at(0.25), at(0.75) - at(0.5)) / normal_quantile(0.75);
}

/// Whether few values lie half-way between two centres: a tail below a ceiling has its share there, which may
/// look like a second core.
bool is_valley(std::span<const double> sorted, double low, double high) {
  const double third = (high - low) / 3;
  const auto first = std::lower_bound(sorted.begin(), sorted.end(), low + third),
             last = std::upper_bound(first, sorted.end(), high - third);
  return static_cast<double>(last - first) < constants::split_valley * static_cast<double>(sorted.size());
}

/// Faulty parts among those of two kinds widen the side that they are on. Of the cuts between two sides whose
/// cores are more than `least` deviations of these cores apart, the one nearest to the middle: faulty parts
/// are few. A tail is never as large as a side must be.
Split split_of_cores(std::span<const double> sorted, double least) {
  constexpr std::size_t most_clusters = 4;
  Split best;
  for (std::size_t k = 2; k <= most_clusters; ++k) {
    for (const std::size_t low : cluster_cuts(sorted, k)) {
      const std::size_t high = sorted.size() - low;
      const auto smaller = static_cast<double>(std::min(low, high));
      if (smaller < constants::split_minority * static_cast<double>(sorted.size()) ||
          std::min(low, high) <= std::min(best.low, best.high))
        continue;
      // Halves of one kind are less than 3 of these apart, and fits take a hundred times as long.
      const auto lower = sorted.first(low), upper = sorted.subspan(low);
      const double apart = upper[high / 2] - lower[low / 2];
      if (apart < least / 2 * std::max(quick_deviation(lower), quick_deviation(upper))) continue;
      const auto below = robust_fit(lower), above = robust_fit(upper);
      // Where the core is not most of a side there are more than two kinds.
      if (2 * below.kept <= low || 2 * above.kept <= high) continue;
      const auto squares = [](const RobustFit& f) { return static_cast<double>(f.kept) * f.scale * f.scale; };
      const double deviation =
          std::sqrt((squares(below) + squares(above)) / static_cast<double>(below.kept + above.kept));
      const double distance = (above.centre - below.centre) / deviation;
      if (distance > least && is_valley(sorted, below.centre, above.centre))
        best = {distance, 0.5 * (sorted[low - 1] + sorted[low]), below.centre, above.centre, low, high};
    }
  }
  return best;
}

/// The best cut that leaves a group on either side. Parts that lie apart in smaller numbers are no group:
/// they are set aside, and the cut is looked for among the others, so that no group is filled up with healthy
/// parts.
Split group_split(const Judgement& j, const Population& p, const std::vector<std::size_t>& order) {
  std::vector<double> values;
  std::vector<std::int32_t> node;
  const bool few = p.size() < constants::robust_min;
  for (const auto i : order) {
    values.push_back(p.members[i].residual);
    node.push_back(j.entities.node(p.members[i].row->entity));
  }
  const auto apart = nested(values, node);
  const double distance = least_distance(static_cast<std::size_t>(apart.effective), 2);
  if (few)
    for (std::size_t k = 0; k < order.size(); ++k) node[k] = p.members[order[k]].row->entity;
  const auto nodes = [&](std::size_t from, std::size_t to) {
    return std::set<std::int32_t>(node.begin() + static_cast<std::ptrdiff_t>(from),
                                  node.begin() + static_cast<std::ptrdiff_t>(to))
        .size();
  };
  // Devices of one or two bad nodes are bad nodes, not a population of devices. Of ten parts two are a fifth.
  const auto all = static_cast<double>(nodes(0, p.size()));
  const auto least =
      static_cast<std::size_t>(few ? std::clamp(std::ceil(constants::split_minority * all), 2.0, 3.0)
                                   : std::max(3.0, std::ceil(0.04 * all)));
  std::size_t begin = 0, end = p.size();
  while (end - begin >= 2 * least) {
    const auto left = std::span(values).subspan(begin, end - begin);
    Split split = best_split(left, 1e-6, 1);
    if (split.distance <= distance && !few) split = split_of_cores(left, distance);
    if (split.distance <= distance || split.mean_high - split.mean_low < constants::delta_warn) break;
    const std::size_t cut = begin + split.low;
    if (nodes(begin, cut) < least) {
      begin = cut;
    } else if (nodes(cut, end) < least) {
      end = cut;
    } else {
      split.low = cut;
      split.high = p.size() - cut;
      return split;
    }
  }
  return {};
}

/// Which members are on the slow side, and how far the sides are apart.
void mark_sides(Population& p, const std::vector<std::size_t>& order, const Split& split) {
  std::vector<double> sides[2];
  for (std::size_t k = 0; k < order.size(); ++k) {
    auto& m = p.members[order[k]];
    m.low = k < split.low;
    sides[m.low ? 1 : 0].push_back(m.residual);
  }
  p.split.found = true;
  p.split.split = split;
  p.split.deficit = median(sides[0]) - median(sides[1]);
}

}  // namespace

std::vector<std::int32_t> entities_of(const Population& p) {
  std::vector<std::int32_t> rows;
  for (const auto& m : p.members) rows.push_back(m.row->entity);
  return rows;
}

std::vector<std::size_t> ascending(const Population& p) {
  std::vector<std::size_t> order(p.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](auto a, auto b) { return p.members[a].residual < p.members[b].residual; });
  return order;
}

double least_distance(std::size_t parts, std::size_t groups) noexcept {
  const double freedom = static_cast<double>(parts) - static_cast<double>(groups);
  return constants::split_distance +
         (parts < constants::robust_min ? constants::split_distance_few / (freedom * freedom) : 0);
}

bool too_far_for_kinds(const Population& p, double deficit) noexcept {
  return !p.series->is_imported() && deficit > log_deficit(constants::kind_gross_deficit);
}

bool may_be_all_that_is_sound(std::size_t fast, std::size_t all) noexcept {
  return static_cast<double>(fast) >= constants::split_minority * static_cast<double>(all);
}

bool may_be_a_kind(std::size_t slow, std::size_t all, double deficit) noexcept {
  const double share = static_cast<double>(slow) / static_cast<double>(all);
  if (share >= constants::kind_always) return true;
  if (deficit > log_deficit(constants::kind_most_deficit)) return false;
  // Of fewer than six a fault is claimed against an assumed spread, which is that of kinds, too.
  if (all < constants::peers_min_population) return false;
  return share >= (all >= constants::robust_min ? constants::split_minority : constants::kind_share_small);
}

bool may_be_a_kind(const Population& p, std::size_t slow, double deficit) noexcept {
  if (p.size() >= constants::peers_min_population && too_far_for_kinds(p, deficit))
    return 2 * slow >= p.size();
  return may_be_a_kind(slow, p.size(), deficit);
}

/// What a configuration explains are the parts that have it: others are held against the high side.
void keep_explained(Population& p, const std::vector<Attribute>& attributes) {
  const SplitFound& s = p.split;
  if (!s.explained() || s.fast()) return;
  const auto a = std::ranges::find(attributes, s.attribute, &Attribute::name);
  for (std::size_t i = 0; i < p.size(); ++i)
    p.members[i].low =
        p.members[i].low && a->of[i] >= 0 && a->values[static_cast<std::size_t>(a->of[i])] == s.value;
}

std::string place_in_common(const Judgement& j, Population p, const std::vector<std::int32_t>& rows) {
  const std::set<std::int32_t> listed(rows.begin(), rows.end());
  for (auto& m : p.members) m.low = listed.contains(m.row->entity);
  p.split = {};
  p.split.split.low = listed.size();
  p.split.split.high = p.size() - listed.size();
  auto places = attributes_of(j, entities_of(p));
  std::erase_if(places, [](const Attribute& a) { return !is_place(a.name); });
  explain(p, places);
  return in_common(p.split);
}

void find_split(const Judgement& j, Population& p, const std::vector<Attribute>& attributes) {
  if (p.size() < constants::robust_min) return;
  const auto order = ascending(p);
  const Split split = group_split(j, p, order);
  if (split.low == 0) return;
  mark_sides(p, order, split);
  explain(p, attributes);
  keep_explained(p, attributes);
  auto& s = p.split;
  s.apart = s.explained() || s.fast() || may_be_a_kind(p, split.low, s.deficit);
}

void find_split_of_few(const Judgement& j, Population& p) {
  if (p.size() < constants::peers_min_population || p.size() >= constants::robust_min || p.shared) return;
  const auto order = ascending(p);
  const Split split = group_split(j, p, order);
  if (split.low == 0) return;
  mark_sides(p, order, split);
  p.split.apart = true;
}

void find_split_of_rest(const Judgement& j, Population& p) {
  if (p.size() < constants::robust_min)
    find_split_of_few(j, p);
  else
    find_split(j, p, attributes_of(j, entities_of(p)));
  if (!p.split.found) return;
  p.split.apart = true;
  set_centres(p);
}

void find_split_by_clock(const Judgement& j, Population& p) {
  const double least = log_deficit(p.series->judging.fault_threshold);
  if (!p.clocked || p.slope <= 0 || p.split.found || p.size() < constants::peers_min_population || p.shared)
    return;
  std::vector<double> clocks;
  for (const auto& m : p.members) clocks.push_back(m.clock);
  if (quantile(clocks, 0.95) - quantile(clocks, 0.05) < least / 2) return;
  Population q = p;
  for (auto& m : q.members) m.residual = m.rate;
  const auto order = ascending(q);
  const Split split = group_split(j, q, order);
  if (split.low == 0 || split.mean_high - split.mean_low < least) return;
  mark_sides(q, order, split);
  if (p.size() >= constants::robust_min) explain(q, attributes_of(j, entities_of(q)));
  p.split = q.split;
  p.split.apart = p.split.by_clock = true;
  for (std::size_t i = 0; i < p.size(); ++i) p.members[i].low = q.members[i].low;
}

bool is_noted_split(const Population& p) noexcept {
  return p.split.found && p.size() < constants::robust_min &&
         p.split.split.mean_high - p.split.split.mean_low < log_deficit(constants::kind_most_usual);
}

}  // namespace assay::verdict
