// SPDX-License-Identifier: Apache-2.0
// Who burns when. Pure functions of time; a burn begins at time 0.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace assay::burn {

struct Span {
  double begin_s = 0, end_s = 0;
};

/// The burn of one of `ranks` ranks: they begin one after the other, evenly spread over `ramp_s`, and end in
/// the same order, so that no supply sees all of them step at once. Each burns for duration_s - ramp_s.
Span staggered(int position, int ranks, double duration_s, double ramp_s) noexcept;
/// The time in which all of them burn.
Span all_burn(double duration_s, double ramp_s) noexcept;

/// Some work of a part: FLOP or bytes.
struct Work {
  double begin_s = 0, end_s = 0, amount = 0;
};

/// Rates in `windows` equal windows of a span: work counts evenly over the time that it took.
std::vector<double> window_rates(std::span<const Work> work, const Span& span, std::size_t windows);
/// Rates of the work that is under way in each window, without the time between: of all-reduces, whose begin
/// depends on every rank. A window without any has the rate of the window before it, the first ones that of
/// the first with work. NaN where there is no work at all.
std::vector<double> rates_of_work(std::span<const Work> work, const Span& span, std::size_t windows);

/// A train of pulses: work for duty * period_s, then rest. The first `ramp` and the last as many are weaker,
/// the outermost weakest.
struct PulseTrain {
  double period_s = 1, duty = 0.5;
  int pulses = 0, ramp = 0;

  double begin_s(int pulse) const noexcept { return pulse * period_s; }
  double end_s(int pulse) const noexcept { return (pulse + duty) * period_s; }
  double shortest_phase_s() const noexcept { return period_s * (duty < 0.5 ? duty : 1 - duty); }
  /// Share of its high phase that a device works in, above 0 and up to 1.
  double amplitude(int pulse) const noexcept;
  bool full(int pulse) const noexcept { return pulse >= ramp && pulse < pulses - ramp; }
  int full_pulses() const noexcept { return pulses - 2 * ramp; }
  /// Seconds until a device may work at time `t` within the high phase of a pulse; 0: now. A weak pulse works
  /// in slices of a sixteenth of its high phase. `share` in [0, 1) moves the slices, so that devices with
  /// different shares together draw evenly.
  double rest_s(int pulse, double t, double share) const noexcept;
};

/// The train of that many seconds: at least 3 ramp pulses on either side and 5 full ones, so it may take
/// longer.
PulseTrain make_train(double frequency_hz, double duty, double seconds, double ramp_s) noexcept;

}  // namespace assay::burn
