// SPDX-License-Identifier: Apache-2.0
#include "config/fault_text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.hpp"
#include "config/suggest.hpp"

namespace assay::fault_text {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end = text.find(separator); end != std::string::npos; end = text.find(separator, begin)) {
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

void bad(const std::string& key, const std::string& value, const std::string& wanted) {
  throw_usage(key + "=" + value + ": " + wanted);
}

double real(const std::string& key, const std::string& text) {
  double value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
    bad(key, text, "not a number");
  return value;
}

double fraction(const std::string& key, const std::string& text, bool one_allowed) {
  const double value = real(key, text);
  if (value <= 0 || value > 1 || (value == 1 && !one_allowed))
    bad(key, text, one_allowed ? "must be above 0 and at most 1" : "must be between 0 and 1, both excluded");
  return value;
}

std::string one_of(const std::string& key, const std::string& text, const std::vector<std::string>& allowed) {
  if (!contains(allowed, text)) bad(key, text, "one of " + join(allowed));
  return text;
}

std::string kind_word(const std::string& text) {
  if (std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
    throw_usage("a control character in the text of a fault");
  return text.substr(0, text.find(':'));
}

void no_kind(const std::string& name, const std::vector<std::string>& names) {
  throw_usage("no fault '" + name + "' (faults: " + join(names) + ")");
}

std::vector<std::string> each_field(
    const std::string& text, const std::string& kind, const std::vector<std::string>& keys,
    const std::function<void(const std::string& key, const std::string& value)>& set) {
  std::vector<std::string> seen;
  const auto colon = text.find(':');
  if (colon == std::string::npos) return seen;
  for (const std::string& field : split(text.substr(colon + 1), ',')) {
    const auto equals = field.find('=');
    const std::string key = field.substr(0, equals);
    if (!contains(keys, key)) throw_usage(kind + " has no key '" + key + "' (keys: " + join(keys) + ")");
    if (equals == std::string::npos || equals + 1 == field.size())
      throw_usage(key + " needs a value in '" + text + "'");
    if (contains(seen, key)) throw_usage(key + " is given twice in '" + text + "'");
    seen.push_back(key);
    set(key, field.substr(equals + 1));
  }
  return seen;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace assay::fault_text
