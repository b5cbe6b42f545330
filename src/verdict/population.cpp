// SPDX-License-Identifier: Apache-2.0
#include "verdict/population.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "measure/statistics.hpp"
#include "verdict/constants.hpp"

namespace assay::verdict {
namespace {

using results::not_taken;

/// Without a clock a power-limited GEMM varies by chip, and 3 % is no fault; at equal clock it is.
void set_deltas(Population& p) {
  const auto& suite = p.series->suite;
  const bool compute = suite == "gemm" || suite == "train";
  p.delta_raw = compute ? constants::delta_compute_raw
                : suite == "p2p" ? constants::delta_nic
                                 : constants::delta_memory;
  p.delta = compute && p.clocked ? constants::delta_at_clock : p.delta_raw;
}

/// The case's own covariate `clock`, by entity.
std::unordered_map<std::int32_t, double> clocks_of(const Judgement& j, const Series& s) {
  std::unordered_map<std::int32_t, double> clocks;
  for (const auto& other : j.series) {
    if (other.metric != "clock" || other.unit != "Hz" || other.suite != s.suite || other.name != s.name) continue;
    for (const auto& row : other.rows) {
      if (row.median > 0) clocks[row.entity] = std::log(row.median);
    }
  }
  return clocks;
}

std::vector<double> values_of(const Population& p, double Member::* value) {
  std::vector<double> values;
  values.reserve(p.size());
  for (const auto& m : p.members) values.push_back(m.*value);
  return values;
}

/// The standard error of a member's median: from the halves of everybody's samples, which needs no shape of the noise,
/// and from the blocks, which see what moves slowly.
void pool_error(Population& p) {
  std::vector<double> halves, own;
  for (const auto& m : p.members) {
    if (std::isfinite(m.row->half)) halves.push_back(m.row->half);
    if (!std::isnan(m.row->standard_error)) own.push_back(m.row->standard_error / std::abs(m.row->median));
  }
  const double from_halves = halves.size() >= 3 ? mad_sigma(halves) / 2 : 0;
  p.se = std::max(from_halves, own.empty() ? not_taken : median(own));
  if (own.empty()) p.se = not_taken;
}

void take_out_clock(const Judgement& j, Population& p) {
  const auto clocks = clocks_of(j, *p.series);
  for (auto& m : p.members) {
    const auto it = clocks.find(m.row->entity);
    m.clock = it == clocks.end() ? not_taken : it->second;
  }
  p.clocked = std::none_of(p.members.begin(), p.members.end(), [](const Member& m) { return std::isnan(m.clock); });
  if (!p.clocked) return;
  const auto f = values_of(p, &Member::clock), y = values_of(p, &Member::rate);
  p.slope = p.series->suite == "gemm" || p.series->suite == "train" ? 1 : 0;
  if (p.size() >= constants::clock_min_population) {
    const Line line = robust_line(f, y);
    // Clocks that hardly differ tell nothing about the slope.
    if (line.slope_error < constants::clock_max_error && line.slope > -0.25 && line.slope < 1.5) {
      p.slope = std::max(line.slope, 0.0);
      p.slope_error = line.slope_error;
      p.slope_fitted = true;
    }
  }
  p.centre_clock = median(f);
  for (auto& m : p.members) m.residual -= p.slope * (m.clock - p.centre_clock);
}

/// Slots, firmware, limits: groups of at least 8 whose median is apart beyond doubt are centred on the rest.
void take_out_groups(Population& p, const std::vector<Attribute>& attributes) {
  for (const auto& a : attributes) {
    const auto values = values_of(p, &Member::residual);
    const double centre = median(values);
    std::vector<std::vector<double>> groups(a.values.size());
    for (std::size_t i = 0; i < p.size(); ++i) {
      if (a.of[i] >= 0) groups[static_cast<std::size_t>(a.of[i])].push_back(values[i]);
    }
    std::vector<double> shift(groups.size(), 0.0);
    for (std::size_t g = 0; g < groups.size(); ++g) {
      if (groups[g].size() < constants::group_min) continue;
      const double apart = median(groups[g]) - centre;
      if (std::abs(apart) > constants::group_sigmas * median_standard_error(groups[g])) shift[g] = apart;
    }
    // Groups that are apart by what would be a fault are no structure to be forgiven: the split test names them.
    for (std::size_t i = 0; i < p.size(); ++i) {
      if (a.of[i] < 0) continue;
      const double apart = shift[static_cast<std::size_t>(a.of[i])];
      if (std::abs(apart) < constants::delta_warn) p.members[i].residual -= apart;
    }
  }
}

std::size_t nodes_among(const Judgement& j, const Population& p, bool low_only) {
  std::set<std::int32_t> nodes;
  for (const auto& m : p.members) {
    if (!low_only || m.low) nodes.insert(j.entities.node(m.row->entity));
  }
  return nodes.size();
}

/// The recorded attribute that the low side has and the high side has not.
void explain(Population& p, const std::vector<Attribute>& attributes) {
  auto& s = p.split;
  std::size_t tried = 0;
  for (const auto& a : attributes) tried += a.values.size();
  for (const auto& a : attributes) {
    std::vector<std::size_t> low(a.values.size()), high(a.values.size());
    for (std::size_t i = 0; i < p.size(); ++i) {
      if (a.of[i] >= 0) ++(p.members[i].low ? low : high)[static_cast<std::size_t>(a.of[i])];
    }
    for (std::size_t v = 0; v < a.values.size(); ++v) {
      // It must cover nearly all of the slow and few of the others, or it explains nothing.
      if (10 * low[v] < 8 * s.split.low || 10 * high[v] > 2 * s.split.high) continue;
      const double chance = fisher_p(low[v], s.split.low, low[v] + high[v], p.size()) * static_cast<double>(tried);
      if (chance > constants::explain_p || chance >= s.p) continue;
      s.p = chance;
      s.attribute = a.name;
      s.value = a.values[v];
      s.with_low = low[v];
      s.with_high = high[v];
    }
  }
}

void find_split(const Judgement& j, Population& p, const std::vector<Attribute>& attributes) {
  if (p.size() < constants::robust_min) return;
  const auto values = values_of(p, &Member::residual);
  const Split split = best_split(values);
  if (split.distance <= constants::split_distance || split.mean_high - split.mean_low < constants::delta_warn) return;
  for (auto& m : p.members) m.low = m.residual < split.cut;
  // Devices of one or two bad nodes are bad nodes, not a population of devices. The same with the high side.
  const std::size_t all = nodes_among(j, p, false), low = nodes_among(j, p, true);
  const auto least = static_cast<std::size_t>(std::max(3.0, std::ceil(0.04 * static_cast<double>(all))));
  if (low < least) {
    for (auto& m : p.members) m.low = false;
    return;
  }
  p.split.found = true;
  p.split.split = split;
  explain(p, attributes);
}

void set_centres(Population& p) {
  std::vector<double> rates, residuals, low;
  for (const auto& m : p.members) {
    if (p.split.found && m.low) {
      low.push_back(m.residual);
      continue;
    }
    rates.push_back(m.rate);
    residuals.push_back(m.residual);
  }
  p.centre = median(rates);
  p.centre_residual = median(residuals);
  if (p.size() >= constants::robust_min) {
    p.centre = robust_fit(rates).centre;
    p.centre_residual = robust_fit(residuals).centre;
  }
  if (p.split.found) p.split.deficit = p.centre_residual - median(low);
}

}  // namespace

double log_rate(double value, results::Better better) noexcept {
  if (!(value > 0) || std::isinf(value)) return not_taken;
  return better == results::Better::lower ? -std::log(value) : std::log(value);
}
double from_log_rate(double rate, results::Better better) noexcept {
  return std::exp(better == results::Better::lower ? -rate : rate);
}
double fraction(double log_deficit) noexcept { return -std::expm1(-log_deficit); }
double log_deficit(double fraction) noexcept { return -std::log1p(-fraction); }

bool Population::eligible() const noexcept { return se <= delta * constants::eligible_fraction; }
double Population::effective_delta() const noexcept { return std::max(delta, constants::noise_z * se); }

bool is_population(const Series& s) {
  const bool collective = s.stage == "groups" || s.stage == "world" || s.stage == "train";
  return s.judged && !collective && s.suite != "inventory" && s.kind != "link";
}

bool takes_turns(const Series& s) {
  const auto mode = s.first == nullptr ? Json() : s.first->parameters.value("mode", Json());
  return (mode.is_string() && mode.get<std::string>() == "alone") || ends_with(s.name, "-alone");
}

std::vector<Population> populations_of(const Judgement& j, const Series& series, AttributeCache& attributes) {
  std::vector<Population> populations(series.strata.size());
  for (const auto& row : series.rows) {
    const double rate = log_rate(row.median, series.better);
    if (std::isnan(rate)) continue;
    populations[static_cast<std::size_t>(row.stratum)].members.push_back({&row, rate, rate, not_taken, false});
  }
  for (std::size_t i = 0; i < populations.size(); ++i) {
    auto& p = populations[i];
    p.series = &series;
    p.stratum = static_cast<std::int32_t>(i);
  }
  std::erase_if(populations, [](const Population& p) { return p.size() < 2; });
  for (auto& p : populations) {
    for (const auto& m : p.members) p.shared = p.shared || j.entities.shares_cores(m.row->entity);
    p.shared = p.shared && !takes_turns(series);
    pool_error(p);
    take_out_clock(j, p);
    set_deltas(p);
    if (p.size() >= constants::robust_min) {
      std::vector<std::int32_t> rows;
      for (const auto& m : p.members) rows.push_back(m.row->entity);
      const auto& recorded = attributes.of(j, std::move(rows));
      take_out_groups(p, recorded);
      find_split(j, p, recorded);
    }
    set_centres(p);
  }
  return populations;
}

}  // namespace assay::verdict
