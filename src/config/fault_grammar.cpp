// SPDX-License-Identifier: Apache-2.0
#include "config/fault_grammar.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.hpp"
#include "base/glob.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "config/suggest.hpp"

namespace assay {
namespace {

using fault_grammar::bad;

constexpr const char* list_or_range = "a list like 1+4 or a range like 2-5";
constexpr const char* two_ranks = "two ranks as SRC>DST";

template <typename T>
T number_from(const std::string& key, const std::string& text, const char* what) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) bad(key, text, what);
  return value;
}

std::int64_t whole_number(const std::string& key, const std::string& text) {
  return number_from<std::int64_t>(key, text, "not a whole number");
}

double real_number(const std::string& key, const std::string& text) {
  const auto value = number_from<double>(key, text, "not a number");
  if (!std::isfinite(value)) bad(key, text, "not a number");
  return value;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// A number with an optional unit, read by `parse`, whose message gets the key.
template <typename Parse>
auto quantity(const std::string& key, const std::string& text, Parse parse) {
  try {
    return parse(text);
  } catch (const Error& e) {
    bad(key, text, e.what());
  }
}

void set_pair(CommonFault& fault, const std::string& key, const std::string& text) {
  const auto ends = split(text, '>');
  if (ends.size() != 2) bad(key, text, two_ranks);
  fault.pair_source = number_from<std::int64_t>(key, ends[0], two_ranks);
  fault.pair_destination = number_from<std::int64_t>(key, ends[1], two_ranks);
  if (fault.pair_source < 0 || fault.pair_destination < 0) bad(key, text, two_ranks);
  if (fault.pair_source == fault.pair_destination) bad(key, text, "a rank has no link to itself");
}

}  // namespace

NumberSet NumberSet::parse(const std::string& key, const std::string& text) {
  NumberSet set;
  for (const std::string& part : split(text, '+')) {
    const auto ends = split(part, '-');
    if (ends.size() > 2 || ends[0].empty()) bad(key, text, list_or_range);
    const auto first = whole_number(key, ends[0]);
    const auto last = ends.size() == 2 ? whole_number(key, ends[1]) : first;
    if (first < 0 || last < first) bad(key, text, list_or_range);
    set.ranges_.emplace_back(first, last);
  }
  return set;
}

bool NumberSet::contains(std::int64_t n) const noexcept {
  return everything() || std::any_of(ranges_.begin(), ranges_.end(),
                                     [n](const auto& r) { return r.first <= n && n <= r.second; });
}

NodeSet NodeSet::parse(const std::string& key, const std::string& text) {
  NodeSet set;
  for (const std::string& part : split(text, '+')) {
    set.globs_.push_back(part);
    // A node may also be named 17, or 10-0-0-5.
    if (part.find_first_not_of("0123456789-") == std::string::npos &&
        std::count(part.begin(), part.end(), '-') <= 1)
      set.indices_.push_back(NumberSet::parse(key, part));
  }
  return set;
}

bool NodeSet::contains(std::int64_t index, const std::string& name) const {
  return globs_.empty() ||
         std::any_of(indices_.begin(), indices_.end(),
                     [&](const NumberSet& set) { return set.contains(index); }) ||
         std::any_of(globs_.begin(), globs_.end(),
                     [&](const std::string& glob) { return glob_match(glob, name); });
}

bool CommonFault::hits_case(const std::string& suite_name, const std::string& case_name) const {
  const bool with_suite = case_glob.find('/') != std::string::npos;
  return glob_match(suite, suite_name) &&
         glob_match(case_glob, with_suite ? suite_name + "/" + case_name : case_name);
}

namespace fault_grammar {

void bad(const std::string& key, const std::string& value, const std::string& wanted) {
  throw_usage(key + "=" + value + ": " + wanted);
}

Reader read_text(std::string& to) {
  return [&to](const std::string&, const std::string& value) { to = value; };
}

Reader read_one_of(std::string& to, const std::vector<std::string>& allowed) {
  return [&to, allowed](const std::string& key, const std::string& value) {
    if (!contains(allowed, value)) bad(key, value, "one of " + join(allowed));
    to = value;
  };
}

Reader read_real(double& to) {
  return [&to](const std::string& key, const std::string& value) { to = real_number(key, value); };
}

Reader read_fraction(double& to, bool one_allowed) {
  return [&to, one_allowed](const std::string& key, const std::string& value) {
    to = real_number(key, value);
    if (to <= 0 || to > 1 || (to == 1 && !one_allowed))
      bad(key, value,
          one_allowed ? "must be above 0 and at most 1" : "must be between 0 and 1, both excluded");
  };
}

Reader read_percent(double& to) {
  return [&to](const std::string& key, const std::string& value) {
    const double percent = real_number(key, value);
    if (percent <= 0 || percent >= 100) bad(key, value, "must be between 0 and 100, both excluded");
    to = 1 - percent / 100;
  };
}

Reader read_seconds(double& to) {
  return
      [&to](const std::string& key, const std::string& value) { to = quantity(key, value, parse_seconds); };
}

Reader read_bytes(std::uint64_t& to) {
  return [&to](const std::string& key, const std::string& value) { to = quantity(key, value, parse_bytes); };
}

Reader read_whole(std::optional<std::uint64_t>& to, std::uint64_t most, const char* what) {
  return [&to, most, what](const std::string& key, const std::string& value) {
    to = number_from<std::uint64_t>(key, value, "not a whole number");
    if (*to > most) bad(key, value, what);
  };
}

Reader read_numbers(NumberSet& to) {
  return [&to](const std::string& key, const std::string& value) { to = NumberSet::parse(key, value); };
}

Readers common_readers(CommonFault& fault) {
  return {
      {"node", [&fault](const std::string& key,
                        const std::string& value) { fault.nodes = NodeSet::parse(key, value); }},
      {"device", read_numbers(fault.devices)},
      {"suite", read_text(fault.suite)},
      {"case", read_text(fault.case_glob)},
      {"metric", read_text(fault.metric)},
      {"pair", [&fault](const std::string& key, const std::string& value) { set_pair(fault, key, value); }},
      {"factor", read_fraction(fault.factor, false)},
      {"duty", read_fraction(fault.duty, true)}};
}

bool Parsed::has(const std::string& key) const { return contains(keys, key); }

Parsed parse(const std::string& text, const std::vector<KindRow>& kinds, const Readers& readers) {
  if (std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
    throw_usage("a control character in the text of a fault");
  const std::string name = text.substr(0, text.find(':'));
  const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const auto& k) { return k.name == name; });
  if (kind == kinds.end()) {
    std::vector<std::string> names;
    for (const KindRow& row : kinds) names.emplace_back(row.name);
    throw_usage("no fault '" + name + "' (faults: " + join(names) + ")");
  }
  Parsed parsed{kind->kind, {}};
  if (name.size() < text.size()) {
    for (const std::string& field : split(text.substr(name.size() + 1), ',')) {
      const auto equals = field.find('=');
      const std::string key = field.substr(0, equals);
      if (!contains(kind->keys, key))
        throw_usage(name + " has no key '" + key + "' (keys: " + join(kind->keys) + ")");
      if (equals == std::string::npos || equals + 1 == field.size())
        throw_usage(key + " needs a value in '" + text + "'");
      if (parsed.has(key)) throw_usage(key + " is given twice in '" + text + "'");
      parsed.keys.push_back(key);
      readers.at(key)(key, field.substr(equals + 1));
    }
  }
  for (const std::string& alternatives : kind->required) {
    const auto keys = split(alternatives, '|');
    if (std::any_of(keys.begin(), keys.end(), [&](const auto& key) { return parsed.has(key); })) continue;
    std::string wanted;
    for (const std::string& key : keys) wanted += (wanted.empty() ? "" : " or ") + key + "=";
    throw_usage(name + " needs " + wanted + " in '" + text + "'");
  }
  return parsed;
}

}  // namespace fault_grammar
}  // namespace assay
