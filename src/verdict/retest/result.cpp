// SPDX-License-Identifier: Apache-2.0
#include "verdict/retest/result.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "measure/robust.hpp"
#include "measure/statistics.hpp"
#include "verdict/constants.hpp"
#include "verdict/retest/samples.hpp"

namespace assay::verdict {
namespace {

using results::not_taken;

/// Of every second sample, logarithmic.
double difference_of_halves(const std::vector<double>& values) {
  if (values.size() < 4) return not_taken;
  std::vector<double> halves[2];
  for (std::size_t i = 0; i < values.size(); ++i) halves[i % 2].push_back(values[i]);
  return std::log(median(halves[1])) - std::log(median(halves[0]));
}

RetestCase read(const results::CaseData& c, const Population& p) {
  RetestCase retest;
  retest.number = retest_number(c.name);
  const auto* m = c.find(p.series->metric);
  const auto* clock = c.find("clock");
  if (m == nullptr) return retest;
  std::vector<double> halves, blocks;
  for (std::size_t r = 0; r < c.entity.size(); ++r) {
    const auto samples = samples_of(c, *m, r);
    const auto values = values_of(samples);
    const auto own_blocks = blocks_of(samples);
    RetestMember f;
    f.entity = c.entity[r];
    f.rate = log_rate(median(values), p.series->better);
    if (std::isnan(f.rate)) continue;
    f.clock = clock == nullptr ? not_taken : std::log(median(values_of(samples_of(c, *clock, r))));
    f.samples = static_cast<std::int64_t>(values.size());
    f.half = difference_of_halves(values);
    f.block_error = not_taken;
    if (own_blocks.size() >= 3) {
      std::vector<double> logs;
      for (const auto& b : own_blocks) logs.push_back(log_rate(b.median, p.series->better));
      f.block_error = standard_deviation(logs) / std::sqrt(static_cast<double>(logs.size()));
    }
    if (std::isfinite(f.half)) halves.push_back(f.half);
    if (std::isfinite(f.block_error)) blocks.push_back(f.block_error);
    retest.blocks = std::max(retest.blocks, static_cast<std::int64_t>(own_blocks.size()));
    const double span_s = own_blocks.back().last_t - own_blocks.front().first_t;
    if (span_s > 0) retest.span_s = std::max(retest.span_s, span_s);
    retest.members.push_back(f);
  }
  // The halves see what changes from sample to sample, the blocks what changes over minutes.
  retest.se =
      std::max(halves.size() >= 3 ? mad_sigma(halves) / 2 : not_taken, blocks.empty() ? 0 : median(blocks));
  if (halves.size() < 3) retest.se = blocks.empty() ? not_taken : median(blocks);
  return retest;
}

double value_of(const Population& p, const RetestMember& f, bool at_clock) {
  return at_clock ? f.rate - p.slope * (f.clock - p.centre_clock) : f.rate;
}

/// What of a difference at equal clock counts, as in the screening (population.cpp): where the slope may be
/// anything from 0 to 1, or the clock is far `below` (logarithmic) that of the controls, some of it may be
/// the clock's.
double beyond_slope_doubt(const Population& p, double below, double difference) {
  if (std::isnan(below)) return difference;
  if (!p.slope_known) {
    const auto [least, most] = std::minmax({difference, difference + below});
    return std::clamp(0.0, least, most);
  }
  if (p.slope <= 0 || below < log_deficit(constants::clock_reach)) return difference;
  return std::copysign(std::max(0.0, std::abs(difference) - constants::clock_slope_doubt * below),
                       difference);
}

std::size_t member_of(const Population& p, std::int32_t entity) {
  const auto it = std::lower_bound(p.members.begin(), p.members.end(), entity,
                                   [](const Member& m, std::int32_t row) { return m.row->entity < row; });
  const bool there = it != p.members.end() && it->row->entity == entity;
  return there ? static_cast<std::size_t>(it - p.members.begin()) : p.size();
}

/// The place in the population of an entity that may be a control; nothing for suspects and strangers.
std::optional<std::size_t> control_of(const Population& p, std::int32_t entity,
                                      const std::vector<std::int32_t>& suspects) {
  const std::size_t i = member_of(p, entity);
  if (i >= p.size() || std::find(suspects.begin(), suspects.end(), entity) != suspects.end())
    return std::nullopt;
  return i;
}

/// Deficit, interval and judgement from a difference and its error.
void settle(RetestResult& c, double difference, double se, double delta, std::size_t candidates,
            double degrees) {
  const double level = constants::alpha_retest / static_cast<double>(std::max<std::size_t>(candidates, 1));
  const double t = t_quantile(1 - level, degrees), bound = log_deficit(delta);
  c.measured = true;
  c.deficit = difference;
  c.se = se;
  c.low = difference - t * se;
  c.high = difference + t * se;
  c.confirmed = c.low > bound;
  c.refuted = c.high < bound && c.low < log_deficit(constants::delta_warn);
  const double distance = std::abs(difference - bound);
  if (!c.confirmed && c.high > bound && distance > 0) {
    const double more = std::pow(t * se / distance, 2);
    c.needed = static_cast<std::int64_t>(std::min(1e6, std::ceil(more * static_cast<double>(c.samples))));
  }
}

/// One case, or its number of samples only where it does not tell.
RetestResult judge_case(const Population& p, const RetestCase& retest, std::size_t at, bool at_clock,
                        const std::vector<std::int32_t>& suspects, std::size_t candidates) {
  RetestResult c;
  const auto* own = retest.find(p.members[at].row->entity);
  if (own == nullptr) return c;
  c.samples = own->samples;
  if (std::isnan(retest.se)) return c;
  // What screening knows of a control (how much faster or slower than the population it is) is taken out of
  // it, so that eight controls stand for all.
  std::vector<double> references, clocks;
  const double held_against = at_clock ? p.residual_reference(at) : p.reference(at);
  for (const auto& f : retest.members) {
    const auto i = control_of(p, f.entity, suspects);
    if (!i || (p.members[*i].low && !p.split.apart)) continue;
    references.push_back(value_of(p, f, at_clock) + held_against -
                         (at_clock ? p.members[*i].residual : p.members[*i].rate));
    clocks.push_back(f.clock);
  }
  if (references.empty()) return c;
  const double delta = at_clock ? p.delta : p.delta_raw,
               measured = median(references) - value_of(p, *own, at_clock),
               difference =
                   at_clock ? beyond_slope_doubt(p, median(clocks) - own->clock, measured) : measured;
  // Faster by what is a fault: its controls are slow now, and say nothing of it.
  if (difference < -log_deficit(delta)) return c;
  c.controls = static_cast<std::int64_t>(references.size());
  const auto n = static_cast<double>(references.size());
  const double spread = references.size() >= 3 ? std::max(mad_sigma(references), retest.se) : 1.5 * retest.se;
  const double se = std::hypot(retest.se, normal_median_error * spread / std::sqrt(n));
  const double degrees =
      std::max(constants::retest_degrees,
               constants::retest_degrees_per_entity * static_cast<double>(retest.members.size() - 1));
  settle(c, difference, se, delta, candidates, degrees);
  return c;
}

}  // namespace

const RetestMember* RetestCase::find(std::int32_t entity) const noexcept {
  const auto it =
      std::find_if(members.begin(), members.end(), [&](const RetestMember& m) { return m.entity == entity; });
  return it == members.end() ? nullptr : &*it;
}

bool is_retest_of(const results::CaseData& c, const Series& s) {
  if (retest_number(c.name) == 0 || c.suite != s.suite || base_name(c.name) != s.name) return false;
  if (c.state != results::CaseState::pass && c.state != results::CaseState::fail) return false;
  // The same name with another key is another measurement (other sizes, another library).
  return s.first == nullptr || c.case_key == s.first->case_key;
}

namespace {

/// Calls `take` with the blocks of each row that screened the series.
void for_screened(const Judgement& j, const Series& s,
                  const std::function<bool(std::int32_t entity)>& of_interest,
                  const std::function<void(std::int32_t entity, const std::vector<SampleBlock>&)>& take) {
  for (const auto& c : j.results.cases) {
    if (retest_number(c.name) > 0 || c.suite != s.suite || base_name(c.name) != s.name) continue;
    const auto* m = c.find(s.metric);
    if (m == nullptr || !m->per_sample) continue;
    for (std::size_t r = 0; r < c.entity.size(); ++r)
      if (of_interest(c.entity[r])) take(c.entity[r], blocks_of(samples_of(c, *m, r)));
  }
}

}  // namespace

Lasting lasting_of(const Judgement& j, const Series& s, std::int32_t entity,
                   const std::function<bool(double median)>& beyond) {
  Lasting found;
  for_screened(
      j, s, [&](std::int32_t row) { return row == entity; },
      [&](std::int32_t, const std::vector<SampleBlock>& blocks) {
        for (const SampleBlock& block : blocks) found.add(block, beyond(block.median));
      });
  return found;
}

void Lasting::add(const SampleBlock& block, bool beyond) {
  ++of;
  if (!beyond) return;
  ++blocks;
  first_t = std::fmin(first_t, block.first_t);
  last_t = std::fmax(last_t, block.last_t);
  if (last_t > first_t) span_s = last_t - first_t;
}

bool Lasting::more_than(double usual, std::size_t parts) const {
  const auto n = static_cast<double>(of);
  double tail = 0;
  for (std::size_t k = blocks; k <= of; ++k) {
    const auto x = static_cast<double>(k);
    tail += std::exp(std::lgamma(n + 1) - std::lgamma(x + 1) - std::lgamma(n - x + 1) + x * std::log(usual) +
                     (n - x) * std::log1p(-usual));
  }
  return tail * static_cast<double>(parts) <= constants::lasting_error;
}

double usual_share_beyond(const Judgement& j, const Population& p, double delta,
                          const std::vector<std::int32_t>& suspects) {
  double beyond = 0.5, of = 1;
  std::size_t at = 0;
  const auto healthy = [&](std::int32_t entity) {
    const auto i = control_of(p, entity, suspects);
    if (!i || p.reference(*i) - p.members[*i].rate > delta) return false;
    at = *i;
    return true;
  };
  for_screened(j, *p.series, healthy, [&](std::int32_t, const std::vector<SampleBlock>& blocks) {
    for (const SampleBlock& block : blocks) {
      of += 1;
      beyond += p.reference(at) - log_rate(block.median, p.series->better) > delta ? 1 : 0;
    }
  });
  return beyond / of;
}

std::vector<RetestCase> retest_cases(const Judgement& j, const Population& p) {
  std::vector<RetestCase> cases;
  for (const auto& c : j.results.cases) {
    if (is_retest_of(c, *p.series)) cases.push_back(read(c, p));
  }
  std::stable_sort(cases.begin(), cases.end(),
                   [](const auto& a, const auto& b) { return a.number < b.number; });
  return cases;
}

std::vector<SlowControl> slow_controls(const Population& p, const std::vector<RetestCase>& cases,
                                       const std::vector<std::int32_t>& suspects) {
  constexpr std::size_t least_controls = 4;
  constexpr std::int64_t least_samples = 20;
  std::vector<SlowControl> controls, slow;
  if (cases.empty()) return slow;
  std::vector<double> losses;
  for (const auto& f : cases.back().members) {
    const auto i = control_of(p, f.entity, suspects);
    if (!i) continue;
    losses.push_back(p.members[*i].rate - f.rate);
    controls.push_back({*i, f.rate, losses.back(), f.samples});
  }
  if (controls.size() < least_controls) return slow;
  // Half of them may have lost it: the fastest quarter tells what is common to all.
  const double common = std::max(0.0, quantile(losses, 0.25));
  for (auto c : controls) {
    c.deficit -= common;
    const bool many = c.samples >= least_samples;
    if (many && c.deficit > std::max(log_deficit(constants::coarse_deficit), 6 * p.se_of(c.member)))
      slow.push_back(c);
  }
  return slow;
}

RetestResult judge_retest(const Population& p, const std::vector<RetestCase>& cases, std::int32_t entity,
                          bool at_clock, const std::vector<std::int32_t>& suspects, std::size_t candidates) {
  RetestResult last;
  const std::size_t at = member_of(p, entity);
  if (at >= p.size()) return last;
  for (auto it = cases.rbegin(); it != cases.rend(); ++it) {
    const RetestResult one = judge_case(p, *it, at, at_clock, suspects, candidates);
    if (!last.measured) {
      const std::int64_t samples = std::max(last.samples, one.samples);  // whether or not they suffice
      last = one;
      last.samples = one.measured ? one.samples : samples;
    } else if (last.refuted && one.confirmed) {
      last.refuted = false;
      last.earlier_confirmed = true;
    }
  }
  return last;
}

}  // namespace assay::verdict
