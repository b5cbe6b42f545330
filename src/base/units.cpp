// SPDX-License-Identifier: Apache-2.0
#include "base/units.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>

#include "base/error.hpp"

namespace assay {
namespace {

struct Factor {
  std::string_view symbol;
  double factor;
};

constexpr std::array<Factor, 10> byte_units{{{"", 1},
                                             {"B", 1},
                                             {"kB", 1e3},
                                             {"MB", 1e6},
                                             {"GB", 1e9},
                                             {"TB", 1e12},
                                             {"KiB", 0x1p10},
                                             {"MiB", 0x1p20},
                                             {"GiB", 0x1p30},
                                             {"TiB", 0x1p40}}};

/// A unit as people write it without prefix, what it is in base units, and which prefixes make sense before
/// it.
struct Unit {
  std::string_view symbol, base;
  double factor;
  bool large, small, binary;
};
constexpr std::array<Unit, 19> units{{{"B/s", "B/s", 1, true, false, true},
                                      {"b/s", "B/s", 0.125, true, false, false},
                                      {"bit/s", "B/s", 0.125, true, false, false},
                                      {"FLOP/s", "FLOP/s", 1, true, false, false},
                                      {"FLOP", "FLOP", 1, true, false, false},
                                      {"FLOP/J", "FLOP/J", 1, true, false, false},
                                      {"token/s", "token/s", 1, true, false, false},
                                      {"op/s", "op/s", 1, true, false, false},
                                      {"B", "B", 1, true, false, true},
                                      {"Hz", "Hz", 1, true, false, false},
                                      {"W", "W", 1, true, true, false},
                                      {"J", "J", 1, true, true, false},
                                      {"min", "s", 60, false, false, false},
                                      {"s", "s", 1, false, true, false},
                                      {"K", "K", 1, false, false, false},
                                      {"nat", "nat", 1, false, true, false},
                                      {"1", "1", 1, false, false, false},
                                      {"%", "1", 0.01, false, false, false},
                                      {"count", "count", 1, false, false, false}}};
constexpr std::array<Factor, 5> large_prefixes{
    {{"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"P", 1e15}}};
constexpr std::array<Factor, 4> small_prefixes{{{"m", 1e-3}, {"u", 1e-6}, {"µ", 1e-6}, {"n", 1e-9}}};
constexpr std::array<Factor, 4> binary_prefixes{
    {{"Ki", 0x1p10}, {"Mi", 0x1p20}, {"Gi", 0x1p30}, {"Ti", 0x1p40}}};

std::string quoted(std::string_view text) { return std::string(1, '\'').append(text).append(1, '\''); }

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view white = " \t\r\n";
  const auto first = text.find_first_not_of(white);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(white) - first + 1);
}

struct Parts {
  double number = 0;
  std::optional<std::uint64_t> whole;  ///< when written without point and exponent, kept exact
  std::string_view unit;
};

/// Splits "1.5 GiB" into number and unit. nullopt when it does not start with a finite number.
std::optional<Parts> split(std::string_view text, bool allow_negative) {
  text = trimmed(text);
  const std::string_view unsigned_text = allow_negative && text.starts_with('-') ? text.substr(1) : text;
  if (unsigned_text.empty()) return std::nullopt;
  const bool starts_as_number =
      (unsigned_text[0] >= '0' && unsigned_text[0] <= '9') || unsigned_text[0] == '.';
  if (!starts_as_number) return std::nullopt;  // from_chars would take "inf" and "nan"
  Parts parts;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, parts.number);
  if (error != std::errc{} || !std::isfinite(parts.number)) return std::nullopt;
  std::uint64_t whole = 0;
  const auto [whole_rest, whole_error] = std::from_chars(text.data(), end, whole);
  if (whole_error == std::errc{} && whole_rest == rest) parts.whole = whole;
  parts.unit = trimmed(std::string_view(rest, static_cast<std::size_t>(end - rest)));
  return parts;
}

template <std::size_t N>
std::optional<double> prefix_factor(const std::array<Factor, N>& prefixes, std::string_view text) {
  for (const Factor& p : prefixes) {
    if (p.symbol == text) return p.factor;
  }
  return std::nullopt;
}

/// The factor of the prefix `text` before `unit`, or nullopt when the two do not go together.
std::optional<double> factor_before(const Unit& unit, std::string_view text) {
  if (text.empty()) return 1.0;
  if (unit.large) {
    if (const auto f = prefix_factor(large_prefixes, text)) return f;
  }
  if (unit.small) {
    if (const auto f = prefix_factor(small_prefixes, text)) return f;
  }
  if (unit.binary) return prefix_factor(binary_prefixes, text);
  return std::nullopt;
}

double finite(double value, std::string_view text) {
  if (!std::isfinite(value)) throw_usage(quoted(text) + " is too large");
  return value;
}

std::string printed(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

}  // namespace

std::uint64_t parse_bytes(std::string_view text) {
  const auto parts = split(text, false);
  const auto factor = parts ? prefix_factor(byte_units, parts->unit) : std::nullopt;
  if (!factor)
    throw_usage(quoted(text) + " is no size (a number with B, kB, MB, GB, TB, KiB, MiB, GiB or TiB)");
  const double bytes = parts->number * *factor;
  if (bytes >= 0x1p63) throw_usage(quoted(text) + " is too large for a size");
  if (parts->whole) return *parts->whole * static_cast<std::uint64_t>(*factor);
  // 4.1 is no binary number: it and its product are rounded, by less than two units in the last place.
  const double whole = std::round(bytes);
  if (std::abs(bytes - whole) > 2 * (std::nextafter(bytes, HUGE_VAL) - bytes))
    throw_usage(quoted(text) + " is no whole number of bytes");
  return static_cast<std::uint64_t>(whole);
}

double parse_seconds(std::string_view text) {
  static constexpr std::array<Factor, 9> names{{{"", 1},
                                                {"s", 1},
                                                {"ms", 1e-3},
                                                {"us", 1e-6},
                                                {"ns", 1e-9},
                                                {"m", 60},
                                                {"min", 60},
                                                {"h", 3600},
                                                {"d", 86400}}};
  const auto parts = split(text, false);
  const auto factor = parts ? prefix_factor(names, parts->unit) : std::nullopt;
  if (!factor) throw_usage(quoted(text) + " is no duration (a number with ms, s, m, h or d)");
  return finite(parts->number * *factor, text);
}

double parse_quantity(std::string_view text, std::string& base_unit) {
  const auto parts = split(text, true);
  if (!parts) throw_usage(quoted(text) + " does not start with a number");
  if (parts->unit.empty())
    throw_usage(quoted(text) + " has no unit (a plain number is written with unit 1 or count)");
  for (const Unit& unit : units) {
    if (!parts->unit.ends_with(unit.symbol)) continue;
    const auto factor = factor_before(unit, parts->unit.substr(0, parts->unit.size() - unit.symbol.size()));
    if (!factor) continue;
    base_unit = unit.base;
    return finite(parts->number * *factor * unit.factor, text);
  }
  throw_usage(
      quoted(text) + " has the unknown unit " + quoted(parts->unit) +
      " (units: B, B/s, b/s, FLOP/s, token/s, op/s, Hz, W, J, K, s, nat, 1, %, count, with SI prefixes)");
}

std::string format_quantity(double value, std::string_view unit) {
  if (std::isnan(value)) return "n/a";
  if (std::isinf(value)) return value > 0 ? "infinite" : "-infinite";
  if (unit == "count") return printed(std::fabs(value) < 1e15 ? "%.0f" : "%.4g", value);
  if (unit == "1" || unit.empty()) return printed("%.4g", value);
  const std::string suffix(unit);
  const Unit* known = nullptr;
  for (const Unit& u : units) {
    if (u.symbol == unit) known = &u;
  }
  const double size = std::fabs(value);
  if (known == nullptr || size == 0) return printed("%.4g ", value) + suffix;
  // Four digits are rounded first, so that 999.99 kB/s becomes 1 MB/s and not 1000 kB/s.
  constexpr double rounds_up = 0.99995;
  if (known->large && size >= 1e3 * rounds_up) {
    const Factor* best = &large_prefixes.front();
    for (const Factor& p : large_prefixes) {
      if (size >= p.factor * rounds_up) best = &p;
    }
    return printed("%.4g ", value / best->factor) + std::string(best->symbol) + suffix;
  }
  if (known->small && size < rounds_up) {
    for (const Factor& p : small_prefixes) {
      if (p.symbol != "µ" && size >= p.factor * rounds_up) {
        return printed("%.4g ", value / p.factor) + std::string(p.symbol) + suffix;
      }
    }
    return printed("%.4g ", value / 1e-9) + "n" + suffix;
  }
  return printed("%.4g ", value) + suffix;
}

std::string format_bytes(std::uint64_t bytes) {
  static constexpr std::array<Factor, 4> prefixes{
      {{"TiB", 0x1p40}, {"GiB", 0x1p30}, {"MiB", 0x1p20}, {"KiB", 0x1p10}}};
  const auto value = static_cast<double>(bytes);
  for (const Factor& p : prefixes) {
    if (value >= p.factor) return printed("%.4g ", value / p.factor) + std::string(p.symbol);
  }
  return std::to_string(bytes) + " B";
}

std::string format_seconds(double seconds) {
  if (std::isnan(seconds)) return "n/a";
  if (!std::isfinite(seconds) || std::fabs(seconds) > 1e15) return printed("%.3g s", seconds);
  if (seconds < 0) return std::string(1, '-').append(format_seconds(-seconds));
  if (seconds == 0) return "0 s";
  if (seconds < 0.9995e-3) return printed("%.3g us", seconds * 1e6);
  if (seconds < 0.9995) return printed("%.3g ms", seconds * 1e3);
  if (seconds < 59.95) return printed("%.3g s", seconds);
  const long long whole = std::llround(seconds);
  if (whole < 3600) return std::to_string(whole / 60) + " min " + std::to_string(whole % 60) + " s";
  const long long minutes = std::llround(seconds / 60);
  return std::to_string(minutes / 60) + " h " + std::to_string(minutes % 60) + " min";
}

}  // namespace assay
