// SPDX-License-Identifier: Apache-2.0
#include "measure/power.hpp"

#include <algorithm>
#include <cmath>

#include "measure/statistics.hpp"

namespace assay {
namespace {

constexpr double not_known = std::numeric_limits<double>::quiet_NaN();

/// Joules at a time between two moves; NaN outside of all of them.
double joules_at(const EnergyTrace& moves, double t) {
  const auto after = std::lower_bound(moves.t.begin(), moves.t.end(), t);
  if (after == moves.t.end() || (after == moves.t.begin() && *after > t)) return not_known;
  const auto i = static_cast<std::size_t>(after - moves.t.begin());
  if (moves.t[i] == t) return moves.joules[i];
  const double share = (t - moves.t[i - 1]) / (moves.t[i] - moves.t[i - 1]);
  return moves.joules[i - 1] + share * (moves.joules[i] - moves.joules[i - 1]);
}

struct Sum {
  double joules = 0, seconds = 0;
  void add(const EnergyTrace& moves, double begin_s, double end_s) {
    const double used = joules_at(moves, end_s) - joules_at(moves, begin_s);
    if (end_s <= begin_s || std::isnan(used)) return;
    joules += used;
    seconds += end_s - begin_s;
  }
  double watts() const noexcept { return seconds > 0 ? joules / seconds : not_known; }
};

}  // namespace

EnergyTrace moves_of(const EnergyTrace& readings) {
  EnergyTrace moves;
  for (std::size_t i = 0; i < readings.t.size(); ++i) {
    const double joules = readings.joules[i];
    if (std::isnan(joules) || (!moves.joules.empty() && joules <= moves.joules.back())) continue;
    moves.t.push_back(readings.t[i]);
    moves.joules.push_back(joules);
  }
  return moves;
}

double resolution_s(const EnergyTrace& moves) {
  // The first reading is not a move: the counter stood there for some time.
  if (moves.t.size() < 4) return not_known;
  std::vector<double> between;
  for (std::size_t i = 2; i < moves.t.size(); ++i) between.push_back(moves.t[i] - moves.t[i - 1]);
  return median(between);
}

double mean_power_w(const EnergyTrace& moves, double begin_s, double end_s) {
  const double resolution = resolution_s(moves);
  if (!(4 * resolution <= end_s - begin_s)) return not_known;
  // From the first move in that time to the last: what is before and behind them the counter may never tell.
  const auto first = std::lower_bound(moves.t.begin(), moves.t.end(), begin_s),
             behind = std::upper_bound(moves.t.begin(), moves.t.end(), end_s);
  if (behind - first < 2) return not_known;
  const auto i = static_cast<std::size_t>(first - moves.t.begin()),
             k = static_cast<std::size_t>(behind - moves.t.begin()) - 1;
  const double seconds = moves.t[k] - moves.t[i];
  return seconds + 2.5 * resolution >= end_s - begin_s ? (moves.joules[k] - moves.joules[i]) / seconds
                                                       : not_known;
}

PowerSwing power_swing(const EnergyTrace& moves, std::span<const PulseTimes> pulses) {
  PowerSwing swing;
  swing.resolution_s = resolution_s(moves);
  double shortest_s = std::numeric_limits<double>::infinity();
  for (const PulseTimes& pulse : pulses)
    shortest_s = std::min({shortest_s, pulse.end_s - pulse.begin_s, pulse.next_s - pulse.end_s});
  const double r = swing.resolution_s;
  if (!(4 * r <= shortest_s)) return swing;
  Sum high, low;
  for (const PulseTimes& pulse : pulses) {
    high.add(moves, pulse.begin_s + r, pulse.end_s - r);
    low.add(moves, pulse.end_s + r, pulse.next_s - r);
  }
  swing.high_w = high.watts();
  swing.low_w = low.watts();
  return swing;
}

}  // namespace assay
