// SPDX-License-Identifier: Apache-2.0
#include "verdict/link_group.hpp"

#include <algorithm>
#include <cmath>

#include "measure/robust.hpp"
#include "measure/statistics.hpp"
#include "verdict/constants.hpp"
#include "verdict/network_constants.hpp"
#include "verdict/population.hpp"

namespace assay::verdict::network {
namespace {

/// Noise of the links makes no end fast.
bool no_end_is_fast(const LinkGroup& group, double gap) {
  constexpr double noise = 4, nearly = 0.9;
  const double fast =
      group.centre + std::max(gap / 2, std::min(noise * mad_sigma(group.rates), nearly * gap));
  return std::ranges::none_of(group.best_of_end, [&](const auto& end) { return end.second > fast; });
}

/// Leaves out the node that is farthest off, if it is no part of the spread of five or more: a slow node.
void leave_out_one(std::vector<double>& nodes) {
  constexpr std::size_t least = 5;
  constexpr double deviations = 6;
  if (nodes.size() < least) return;
  const double centre = median(nodes);
  const auto off = [&](double value) { return std::abs(value - centre); };
  const auto far = std::ranges::max_element(nodes, {}, off);
  if (off(*far) > deviations * std::max(mad_sigma(nodes), constants::network_spread_floor)) nodes.erase(far);
}

/// Of the centre, by the spread of the nodes.
double squared_error_of(const LinkGroup& group) {
  std::vector<double> nodes;
  for (const auto& [node, rates] : group.of_node) nodes.push_back(median(rates));
  leave_out_one(nodes);
  const double spread = std::max(standard_deviation(nodes), constants::network_spread_floor);
  return spread * spread / static_cast<double>(nodes.size());
}

bool beyond_chance(const LinkGroup& group, const LinkGroup& other, double gap, std::size_t groups) {
  if (group.of_node.size() < 2 || other.of_node.size() < 2) return false;
  const double error = normal_median_error * std::sqrt(squared_error_of(group) + squared_error_of(other));
  const auto degrees = static_cast<double>(group.of_node.size() + other.of_node.size() - 2);
  return t_below(-gap / error, degrees) * static_cast<double>(groups) <= constants::network_alpha_warn;
}

}  // namespace

void LinkGroup::add(const Judgement& j, const SeriesRow& row) {
  const double rate = std::log(row.median);
  rates.push_back(rate);
  ends.insert({row.source, row.destination});
  for (const auto end : {row.source, row.destination}) {
    of_node[j.entities.node(end)].push_back(rate);
    const auto [best, fresh] = best_of_end.try_emplace(end, rate);
    if (!fresh) best->second = std::max(best->second, rate);
  }
}

bool slow_beside(const LinkGroup& group, const LinkGroup& other, double least, std::size_t groups) {
  const double gap = other.centre - group.centre;
  return gap >= least && no_end_is_fast(group, gap) &&
         (gap >= log_deficit(constants::peers_small_deficit) || beyond_chance(group, other, gap, groups));
}

}  // namespace assay::verdict::network
