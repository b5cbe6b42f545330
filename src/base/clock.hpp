// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <string_view>

namespace assay {

/// Seconds on CLOCK_MONOTONIC. Comparable between processes of one node, never between nodes.
inline double now_s() noexcept {
  timespec ts{};
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return static_cast<double>(ts.tv_sec) + 1e-9 * static_cast<double>(ts.tv_nsec);
}

/// Processor time of this process, in seconds.
inline double process_cpu_s() noexcept {
  timespec ts{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
  return static_cast<double>(ts.tv_sec) + 1e-9 * static_cast<double>(ts.tv_nsec);
}

/// Resolution of `now_s`, measured as the smallest non-zero step seen over a short loop, in seconds.
double clock_step_s();

/// Now as ISO 8601 UTC with seconds, e.g. "2026-01-31T04:05:06Z".
std::string utc_now_iso();

/// Seconds since 1970 of a time in ISO 8601: "2026-01-31T04:05:06Z", also without seconds, with a fraction
/// of the second, or with an offset as +01:00, +0100 or +01. A time without zone counts as UTC, and a blank
/// may stand for the T. Nothing for anything else.
std::optional<double> parse_iso(std::string_view text);
/// Seconds since 1970 as utc_now_iso would say them.
std::string iso_of(double seconds);

/// Now as a file-name part, e.g. "20260131T040506Z".
std::string utc_now_compact();

}  // namespace assay
