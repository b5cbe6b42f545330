// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ctime>
#include <string>

namespace assay {

/// Seconds on CLOCK_MONOTONIC. Comparable between processes of one node, never between nodes.
inline double now_s() noexcept {
  timespec ts{};
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return static_cast<double>(ts.tv_sec) + 1e-9 * static_cast<double>(ts.tv_nsec);
}

/// Resolution of `now_s`, measured as the smallest non-zero step seen over a short loop, in seconds.
double clock_step_s();

/// Now as ISO 8601 UTC with seconds, e.g. "2026-01-31T04:05:06Z".
std::string utc_now_iso();

/// Now as a file-name part, e.g. "20260131T040506Z".
std::string utc_now_compact();

}  // namespace assay
