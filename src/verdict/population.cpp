// SPDX-License-Identifier: Apache-2.0
#include "verdict/population.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "measure/statistics.hpp"
#include "results/described.hpp"
#include "verdict/constants.hpp"

namespace assay::verdict {
namespace {

using results::not_taken;

/// Without a clock a power-limited GEMM varies by chip, and 3 % is no fault; at equal clock it is.
void set_deltas(Population& p) {
  const auto& judging = p.series->judging;
  p.delta_raw = p.delta = judging.fault_threshold;
  if (!p.clocked) return;
  if (judging.follows_clock()) p.delta = constants::delta_at_clock;
  if (p.slope > 0) p.delta_raw = std::max(p.delta_raw, constants::delta_compute_raw);
}

/// The case's own covariate `clock`, by entity.
std::unordered_map<std::int32_t, double> clocks_of(const Judgement& j, const Series& s) {
  std::unordered_map<std::int32_t, double> clocks;
  for (const auto& other : j.series) {
    if (other.metric != "clock" || other.unit != "Hz" || other.suite != s.suite || other.name != s.name)
      continue;
    for (const auto& row : other.rows) {
      if (row.median > 0) clocks[row.entity] = std::log(row.median);
    }
  }
  return clocks;
}

std::vector<double> values_of(const Population& p, double Member::*value) {
  std::vector<double> values;
  values.reserve(p.size());
  for (const auto& m : p.members) values.push_back(m.*value);
  return values;
}

/// The standard error of a member's median: from the halves of all members' samples, which needs no shape of
/// the noise, and from the blocks, which see what moves slowly.
void pool_error(Population& p) {
  std::vector<double> halves, own, counts;
  for (const auto& m : p.members) {
    counts.push_back(m.row->n);
    if (std::isfinite(m.row->half)) halves.push_back(m.row->half);
    if (!std::isnan(m.row->standard_error)) own.push_back(m.row->standard_error / std::abs(m.row->median));
  }
  const double from_halves = halves.size() >= 3 ? mad_sigma(halves) / 2 : 0;
  p.se = std::max(from_halves, own.empty() ? not_taken : median(own));
  if (own.empty()) p.se = not_taken;
  p.typical_n = std::max(1.0, median(counts));
}

/// How parts differ bounds the error of each from above, since it holds that error. It stands for the error
/// where one or two samples of a part do not tell it. It corrects the error where samples of all parts vary
/// in the same way, as those of a shared server or a rate that the kernel limits: parts are then more alike
/// than their samples.
void bound_noise(Population& p) {
  const bool known = !std::isnan(p.se);
  if (!known) p.noise_known = false;
  if (p.size() < (known ? constants::spread_bounds_from : constants::peers_min_population)) return;
  std::vector<double> off;
  for (std::size_t i = 0; i < p.size(); ++i) off.push_back(p.residual_deficit(i));
  const double spread = std::max(mad_sigma(off), constants::peers_spread_floor);
  p.se = known ? std::min(p.se, constants::spread_bound * spread) : spread;
}

/// At a clock far below that of the others the slope is not known well enough for small remainders.
void doubt_far_clocks(Population& p) {
  const double usual = median(values_of(p, &Member::residual));
  for (auto& m : p.members) {
    const double below = p.centre_clock - m.clock;
    if (below < log_deficit(constants::clock_reach)) continue;
    const double off = m.residual - usual;
    m.residual =
        usual + std::copysign(std::max(0.0, std::abs(off) - constants::clock_slope_doubt * below), off);
  }
}

/// Where the slope may be anything from 0 to 1, what one of these slopes explains is no remainder.
void doubt_slope(Population& p) {
  const double usual = median(values_of(p, &Member::residual));
  for (auto& m : p.members) {
    const double at_one = m.residual - usual, at_zero = at_one + m.clock - p.centre_clock;
    m.residual = usual + std::clamp(0.0, std::min(at_one, at_zero), std::max(at_one, at_zero));
  }
}

/// Another tool does not tell whether a metric follows the clock.
void set_slope(Population& p, const std::vector<double>& f, const std::vector<double>& y) {
  const bool imported = p.series->is_imported();
  p.slope = imported || p.series->judging.follows_clock() ? 1 : 0;
  p.slope_known = !imported;
  if (p.size() >= (imported ? constants::peers_min_population : constants::clock_min_population)) {
    const Line line = robust_line(f, y);
    // Clocks that hardly differ tell nothing about the slope.
    if (line.slope_error < constants::clock_max_error && line.slope > -0.25 && line.slope < 1.5) {
      p.slope = std::max(line.slope, 0.0);
      p.slope_error = line.slope_error;
      p.slope_known = true;
    }
  }
}

void take_out_clock(const Judgement& j, Population& p) {
  const auto clocks = clocks_of(j, *p.series);
  for (auto& m : p.members) {
    const auto it = clocks.find(m.row->entity);
    m.clock = it == clocks.end() ? not_taken : it->second;
  }
  p.clocked =
      std::none_of(p.members.begin(), p.members.end(), [](const Member& m) { return std::isnan(m.clock); });
  if (!p.clocked) return;
  const auto f = values_of(p, &Member::clock), y = values_of(p, &Member::rate);
  p.centre_clock = median(f);
  // What is throttled is explained by its clock as long as most are not: beside a clock of 40 % the slope
  // would decide whether a sound part is slow.
  if (*std::max_element(f.begin(), f.end()) > p.centre_clock + std::log1p(constants::clock_reach)) {
    p.clocked = false;
    return;
  }
  set_slope(p, f, y);
  for (auto& m : p.members) m.residual -= p.slope * (m.clock - p.centre_clock);
  if (!p.slope_known) doubt_slope(p);
  if (p.slope_known && p.slope > 0) doubt_far_clocks(p);
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
    // Groups that are apart by what would be a fault are no structure to be forgiven: the split test names
    // them.
    for (std::size_t i = 0; i < p.size(); ++i) {
      if (a.of[i] < 0) continue;
      const double apart = shift[static_cast<std::size_t>(a.of[i])];
      if (std::abs(apart) < constants::delta_warn) p.members[i].residual -= apart;
    }
  }
}

/// Centre of these values, robust from where that means something.
double centre_of(const std::vector<double>& values) {
  if (values.empty()) return not_taken;
  return values.size() >= constants::robust_min ? robust_fit(values).centre : median(values);
}

}  // namespace

void set_centres(Population& p) {
  std::vector<double> rates[2], residuals[2];
  for (const auto& m : p.members) {
    const std::size_t side = p.split.found && m.low ? 1 : 0;
    rates[side].push_back(m.rate);
    residuals[side].push_back(m.residual);
  }
  // The bulk is the larger side. A side that is judged by itself is its own reference when it has a spread to
  // speak of.
  const std::size_t bulk = rates[1].size() > rates[0].size() ? 1 : 0;
  p.centre = centre_of(rates[bulk]);
  for (const std::size_t side : {0U, 1U}) {
    const bool own = p.split.apart && rates[side].size() >= constants::peers_min_population;
    p.side_rate[side] = centre_of(rates[own ? side : bulk]);
    p.side_residual[side] = centre_of(residuals[own ? side : bulk]);
  }
}

double log_rate(double value, results::Better better) noexcept {
  if (!(value > 0) || std::isinf(value)) return not_taken;
  return better == results::Better::lower ? -std::log(value) : std::log(value);
}
double from_log_rate(double rate, results::Better better) noexcept {
  return std::exp(better == results::Better::lower ? -rate : rate);
}
double fraction(double log_deficit) noexcept { return -std::expm1(-log_deficit); }
double log_deficit(double fraction) noexcept { return -std::log1p(-fraction); }

double Population::se_of(std::size_t i) const noexcept {
  return se * std::sqrt(std::max(1.0, typical_n / std::max(members[i].row->n, 1)));
}
bool Population::eligible() const noexcept { return se <= delta * constants::eligible_fraction; }
bool Population::tells(std::size_t i, double deficit) const noexcept {
  return eligible() || deficit > constants::warn_errors_noisy * se_of(i);
}
double Population::effective_delta() const noexcept { return std::max(delta, constants::noise_z * se); }

bool is_population(const Series& s) {
  return s.judged && !s.is_shared() && s.stage != results::inventory_stage && s.kind != "link";
}

std::size_t peer_group(const Judgement& j, const Series& s, const SeriesRow& row) noexcept {
  const bool shared = j.entities.shares_cores(row.entity) && !s.takes_turns;
  return 2 * static_cast<std::size_t>(row.stratum) + (shared ? 1 : 0);
}
std::size_t peer_groups(const Series& s) noexcept { return 2 * s.strata.size(); }

std::vector<Population> populations_of(const Judgement& j, const Series& series, AttributeCache& attributes) {
  std::vector<Population> populations(peer_groups(series));
  for (const auto& row : series.rows) {
    const double rate = log_rate(row.median, series.better);
    if (std::isnan(rate)) continue;
    populations[peer_group(j, series, row)].members.push_back({&row, rate, rate, not_taken, false});
  }
  for (std::size_t i = 0; i < populations.size(); ++i) {
    auto& p = populations[i];
    p.series = &series;
    p.stratum = stratum_of_group(i);
    p.shared = group_shares_cores(i);
  }
  std::erase_if(populations, [](const Population& p) { return p.size() < 2; });
  for (auto& p : populations) {
    pool_error(p);
    take_out_clock(j, p);
    set_deltas(p);
    if (p.size() >= constants::robust_min) {
      const auto& recorded = attributes.of(j, entities_of(p));
      take_out_groups(p, recorded);
      find_split(j, p, recorded);
    }
    set_centres(p);
    bound_noise(p);
  }
  return populations;
}

}  // namespace assay::verdict
