// SPDX-License-Identifier: Apache-2.0
#include "base/clock.hpp"

#include <algorithm>

namespace assay {
namespace {
std::string utc(const char* format) {
  const std::time_t now = std::time(nullptr);
  std::tm tm{};
  gmtime_r(&now, &tm);
  char text[40];
  std::strftime(text, sizeof text, format, &tm);
  return text;
}
}  // namespace

double clock_step_s() {
  double step = 1.0;
  for (int i = 0; i < 200; ++i) {
    const double a = now_s();
    double b = now_s();
    while (b <= a) b = now_s();
    step = std::min(step, b - a);
  }
  return step;
}

std::string utc_now_iso() { return utc("%Y-%m-%dT%H:%M:%SZ"); }
std::string utc_now_compact() { return utc("%Y%m%dT%H%M%SZ"); }

}  // namespace assay
