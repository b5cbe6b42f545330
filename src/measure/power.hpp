// SPDX-License-Identifier: Apache-2.0
// Power from energy counters, which move in steps: the time of use between two steps is unknown. Pure
// functions.
#pragma once

#include <limits>
#include <span>
#include <vector>

namespace assay {

/// What an energy counter showed over time: seconds, rising, and joules, never falling.
struct EnergyTrace {
  std::vector<double> t, joules;
};

/// Only the readings at which the counter had moved, and the first: when it moved, as well as is known.
/// Readings that are not numbers are left out.
EnergyTrace moves_of(const EnergyTrace& readings);

/// Median seconds between two moves; NaN for fewer than three moves. Power over a shorter time cannot be
/// told.
double resolution_s(const EnergyTrace& moves);

/// Mean watts from the first move between `begin_s` and `end_s` to the last; NaN where these span much less
/// than that time, or where the counter moved less than four times in it.
double mean_power_w(const EnergyTrace& moves, double begin_s, double end_s);

/// A pulse: work from `begin_s` to `end_s`, rest until `next_s`.
struct PulseTimes {
  double begin_s = 0, end_s = 0, next_s = 0;
};

struct PowerSwing {
  double high_w = std::numeric_limits<double>::quiet_NaN();
  double low_w = std::numeric_limits<double>::quiet_NaN();
  double resolution_s = std::numeric_limits<double>::quiet_NaN();
  double swing_w() const noexcept { return high_w - low_w; }
};

/// Mean power of work and of rest over all pulses. Each of the two loses one resolution at either end, in
/// which the counter may still tell of the other. Not measured (NaN) where a fourth of the shorter one is
/// less than the resolution.
PowerSwing power_swing(const EnergyTrace& moves, std::span<const PulseTimes> pulses);

}  // namespace assay
