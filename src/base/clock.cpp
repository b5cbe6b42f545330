// SPDX-License-Identifier: Apache-2.0
#include "base/clock.hpp"

#include <chrono>
#include <cmath>

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

namespace {

/// `n` digits of a number from `from` to `to`, taken off the text; -1 for anything else.
int digits(std::string_view& text, std::size_t n, int from, int to) {
  if (text.size() < n) return -1;
  int value = 0;
  for (const char c : text.substr(0, n)) {
    if (c < '0' || c > '9') return -1;
    value = 10 * value + (c - '0');
  }
  text.remove_prefix(n);
  return value < from || value > to ? -1 : value;
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

/// Seconds of "Z", "+01:00", "+0100", "+01" or nothing; no value for anything else.
std::optional<int> offset_of(std::string_view text) {
  if (text.empty() || text == "Z" || text == "z") return 0;
  const int sign = text.front() == '+' ? 1 : text.front() == '-' ? -1 : 0;
  if (sign == 0) return std::nullopt;
  text.remove_prefix(1);
  const int hours = digits(text, 2, 0, 14);
  const bool more = take(text, ':') || !text.empty();
  const int minutes = more ? digits(text, 2, 0, 59) : 0;
  if (hours < 0 || minutes < 0 || !text.empty()) return std::nullopt;
  return sign * (3600 * hours + 60 * minutes);
}

}  // namespace

std::optional<double> parse_iso(std::string_view text) {
  const int year = digits(text, 4, 1970, 9999);
  bool good = year >= 0 && take(text, '-');
  const int month = good ? digits(text, 2, 1, 12) : -1;
  good = month >= 0 && take(text, '-');
  const int day = good ? digits(text, 2, 1, 31) : -1;
  good = day >= 0 && (take(text, 'T') || take(text, 't') || take(text, ' '));
  const int hour = good ? digits(text, 2, 0, 23) : -1;
  good = hour >= 0 && take(text, ':');
  const int minute = good ? digits(text, 2, 0, 59) : -1;
  if (minute < 0) return std::nullopt;
  const bool seconds = take(text, ':');
  const int second = seconds ? digits(text, 2, 0, 60) : 0;
  if (second < 0) return std::nullopt;
  double part = 0;
  if (seconds && (take(text, '.') || take(text, ',')))
    for (double scale = 0.1; !text.empty() && text.front() >= '0' && text.front() <= '9'; scale /= 10) {
      part += scale * (text.front() - '0');
      text.remove_prefix(1);
    }
  const auto offset = offset_of(text);
  const std::chrono::year_month_day date{std::chrono::year{year},
                                         std::chrono::month{static_cast<unsigned>(month)},
                                         std::chrono::day{static_cast<unsigned>(day)}};
  if (!offset || !date.ok()) return std::nullopt;
  const auto days = std::chrono::sys_days{date}.time_since_epoch().count();
  return 86400.0 * static_cast<double>(days) + 3600 * hour + 60 * minute + second + part - *offset;
}

std::string iso_of(double seconds) {
  const auto whole = static_cast<std::time_t>(std::floor(seconds));
  std::tm parts{};
  gmtime_r(&whole, &parts);
  char text[40];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string utc_now_iso() { return utc("%Y-%m-%dT%H:%M:%SZ"); }
std::string utc_now_compact() { return utc("%Y%m%dT%H%M%SZ"); }

}  // namespace assay
