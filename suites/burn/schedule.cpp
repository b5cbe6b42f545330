// SPDX-License-Identifier: Apache-2.0
#include "suites/burn/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace assay::burn {

Span staggered(int position, int ranks, double duration_s, double ramp_s) noexcept {
  const double begin = ramp_s * position / std::max(1, ranks);
  return {begin, begin + duration_s - ramp_s};
}

Span all_burn(double duration_s, double ramp_s) noexcept { return {ramp_s, duration_s - ramp_s}; }

namespace {

/// Amount of work and seconds of it in each window.
struct Windows {
  std::vector<double> amounts, seconds;
  double width;
};

Windows windows_of(std::span<const Work> work, const Span& span, std::size_t windows) {
  Windows all{std::vector<double>(windows), std::vector<double>(windows),
              (span.end_s - span.begin_s) / static_cast<double>(windows)};
  for (const Work& w : work) {
    if (w.end_s <= w.begin_s) continue;
    const double first = std::max(0.0, std::floor((w.begin_s - span.begin_s) / all.width));
    for (auto i = static_cast<std::size_t>(first); i < windows; ++i) {
      const double begin = span.begin_s + static_cast<double>(i) * all.width;
      if (begin >= w.end_s) break;
      const double shared = std::min(w.end_s, begin + all.width) - std::max(w.begin_s, begin);
      if (shared <= 0) continue;
      all.amounts[i] += w.amount * shared / (w.end_s - w.begin_s);
      all.seconds[i] += shared;
    }
  }
  return all;
}

}  // namespace

std::vector<double> window_rates(std::span<const Work> work, const Span& span, std::size_t windows) {
  Windows all = windows_of(work, span, windows);
  for (double& amount : all.amounts) amount /= all.width;
  return all.amounts;
}

std::vector<double> rates_of_work(std::span<const Work> work, const Span& span, std::size_t windows) {
  const Windows all = windows_of(work, span, windows);
  std::vector<double> rates(windows, std::numeric_limits<double>::quiet_NaN());
  const auto busy = [](double seconds) { return seconds > 0; };
  const auto first = std::find_if(all.seconds.begin(), all.seconds.end(), busy);
  if (first == all.seconds.end()) return rates;
  auto last = static_cast<std::size_t>(first - all.seconds.begin());
  for (std::size_t i = 0; i < windows; ++i) {
    if (busy(all.seconds[i])) last = i;
    rates[i] = all.amounts[last] / all.seconds[last];
  }
  return rates;
}

double PulseTrain::amplitude(int pulse) const noexcept {
  const int from_edge = std::min(pulse, pulses - 1 - pulse);
  return from_edge >= ramp ? 1.0 : static_cast<double>(from_edge + 1) / (ramp + 1);
}

double PulseTrain::rest_s(int pulse, double t, double share) const noexcept {
  const double working = amplitude(pulse);
  if (working >= 1) return 0;
  const double slice_s = duty * period_s / 16;
  const double slices = (t - begin_s(pulse)) / slice_s + share;
  const double within = slices - std::floor(slices);
  return within < working ? 0 : (1 - within) * slice_s;
}

PulseTrain make_train(double frequency_hz, double duty, double seconds, double ramp_s) noexcept {
  constexpr int least_ramp = 3, least_full = 5;
  PulseTrain train;
  train.period_s = 1 / frequency_hz;
  train.duty = duty;
  train.ramp = std::max(least_ramp, static_cast<int>(std::lround(ramp_s * frequency_hz)));
  train.pulses = std::max(static_cast<int>(std::lround(seconds * frequency_hz)), 2 * train.ramp + least_full);
  return train;
}

}  // namespace assay::burn
