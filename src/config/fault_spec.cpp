// SPDX-License-Identifier: Apache-2.0
#include "config/fault_spec.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "base/error.hpp"
#include "base/glob.hpp"
#include "base/units.hpp"

namespace assay {
namespace {

/// Selectors come in groups: a fault takes those that can mean something for it.
enum Selectors : unsigned { by_place = 1, by_case = 2, by_time = 4, by_seed = 8, by_all = 15 };

struct KindInfo {
  FaultKind kind;
  const char* name;
  std::vector<std::string> keys;  ///< beside the selectors
  std::vector<std::string> required;
  unsigned selectors;
};

const std::vector<KindInfo>& kinds() {
  static const std::vector<KindInfo> table = {
      {FaultKind::slow, "slow", {"factor", "duty", "step"}, {"factor"}, by_all},
      {FaultKind::stall, "stall", {"seconds", "duty", "step"}, {"seconds"}, by_all},
      {FaultKind::bitflip, "bitflip", {"target", "word", "bit", "step"}, {"target"}, by_all},
      {FaultKind::nan, "nan", {"target", "word", "step"}, {"target"}, by_all},
      {FaultKind::drop, "drop", {"step", "duty"}, {}, by_all},
      {FaultKind::slowlink, "slowlink", {"pair", "factor"}, {"pair", "factor"}, by_case | by_time},
      {FaultKind::hang, "hang", {"step"}, {}, by_place | by_case | by_time},
      {FaultKind::crash, "crash", {"step"}, {}, by_place | by_case | by_time},
      {FaultKind::exit, "exit", {"code", "step"}, {}, by_place | by_case | by_time},
      {FaultKind::throwing, "throw", {"step"}, {}, by_place | by_case | by_time},
      {FaultKind::diskfull, "diskfull", {"after_bytes"}, {}, 0},
      {FaultKind::nomem, "nomem", {}, {}, by_place | by_case | by_time},
      {FaultKind::clock, "clock", {"ppm", "offset_s"}, {}, by_place},
  };
  return table;
}

std::vector<std::string> keys_of(const KindInfo& info) {
  std::vector<std::string> keys = info.keys;
  const auto add = [&](unsigned group, std::initializer_list<const char*> names) {
    if ((info.selectors & group) != 0) keys.insert(keys.end(), names.begin(), names.end());
  };
  add(by_place, {"rank", "node", "device"});
  add(by_case, {"suite", "case", "metric"});
  add(by_time, {"after"});
  add(by_seed, {"seed"});
  return keys;
}

const std::vector<std::string>& targets() {
  static const std::vector<std::string> names = {"gemm",    "memory",   "allreduce",
                                                 "message", "gradient", "parameter"};
  return names;
}

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

std::string join(const std::vector<std::string>& parts) {
  std::string out;
  for (const auto& part : parts) out += (out.empty() ? "" : ", ") + part;
  return out;
}

[[noreturn]] void bad(const std::string& key, const std::string& value, const std::string& wanted) {
  throw_usage(key + "=" + value + ": " + wanted);
}

template <typename T>
T whole(const std::string& key, const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) bad(key, text, "not a whole number");
  return value;
}

/// A number with an optional unit, read by `parse`, whose message gets the key.
template <typename Parse>
auto quantity(const std::string& key, const std::string& text, Parse parse) {
  try {
    return parse(text);
  } catch (const Error& e) {
    throw_usage(key + "=" + text + ": " + e.what());
  }
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

void set_pair(FaultSpec& spec, const std::string& text) {
  const auto ends = split(text, '>');
  if (ends.size() != 2) bad("pair", text, "two ranks as SRC>DST");
  spec.pair_source = whole<std::int64_t>("pair", ends[0]);
  spec.pair_destination = whole<std::int64_t>("pair", ends[1]);
  if (spec.pair_source < 0 || spec.pair_destination < 0) bad("pair", text, "two ranks as SRC>DST");
  if (spec.pair_source == spec.pair_destination) bad("pair", text, "a rank has no link to itself");
}

using Setter = void (*)(FaultSpec&, const std::string& key, const std::string& text);

const std::map<std::string, Setter>& setters() {
  static const std::map<std::string, Setter> table = {
      {"rank",
       [](FaultSpec& s, const std::string& k, const std::string& v) { s.ranks = NumberSet::parse(k, v); }},
      {"device",
       [](FaultSpec& s, const std::string& k, const std::string& v) { s.devices = NumberSet::parse(k, v); }},
      {"node", [](FaultSpec& s, const std::string&, const std::string& v) { s.nodes = split(v, '+'); }},
      {"suite", [](FaultSpec& s, const std::string&, const std::string& v) { s.suite = v; }},
      {"case", [](FaultSpec& s, const std::string&, const std::string& v) { s.case_glob = v; }},
      {"metric", [](FaultSpec& s, const std::string&, const std::string& v) { s.metric = v; }},
      {"after", [](FaultSpec& s, const std::string& k,
                   const std::string& v) { s.after_s = quantity(k, v, parse_seconds); }},
      {"seed",
       [](FaultSpec& s, const std::string& k, const std::string& v) { s.seed = whole<std::uint64_t>(k, v); }},
      {"factor",
       [](FaultSpec& s, const std::string& k, const std::string& v) { s.factor = fraction(k, v, false); }},
      {"duty",
       [](FaultSpec& s, const std::string& k, const std::string& v) { s.duty = fraction(k, v, true); }},
      {"seconds",
       [](FaultSpec& s, const std::string& k, const std::string& v) {
         s.seconds = quantity(k, v, parse_seconds);
         if (s.seconds > 86400) bad(k, v, "at most a day");
       }},
      {"step",
       [](FaultSpec& s, const std::string& k, const std::string& v) { s.step = whole<std::uint64_t>(k, v); }},
      {"word",
       [](FaultSpec& s, const std::string& k, const std::string& v) { s.word = whole<std::uint64_t>(k, v); }},
      {"bit",
       [](FaultSpec& s, const std::string& k, const std::string& v) {
         s.bit = whole<std::uint64_t>(k, v);
         if (*s.bit > 63) bad(k, v, "a bit of a 64-bit word, 0 to 63");
       }},
      {"target",
       [](FaultSpec& s, const std::string& k, const std::string& v) {
         if (std::find(targets().begin(), targets().end(), v) == targets().end())
           bad(k, v, "one of " + join(targets()));
         s.target = v;
       }},
      {"pair", [](FaultSpec& s, const std::string&, const std::string& v) { set_pair(s, v); }},
      {"code",
       [](FaultSpec& s, const std::string& k, const std::string& v) {
         s.exit_code = whole<int>(k, v);
         if (s.exit_code < 0 || s.exit_code > 255) bad(k, v, "an exit code, 0 to 255");
       }},
      {"after_bytes", [](FaultSpec& s, const std::string& k,
                         const std::string& v) { s.after_bytes = quantity(k, v, parse_bytes); }},
      {"ppm", [](FaultSpec& s, const std::string& k, const std::string& v) { s.clock_ppm = real(k, v); }},
      {"offset_s",
       [](FaultSpec& s, const std::string& k, const std::string& v) { s.clock_offset_s = real(k, v); }},
  };
  return table;
}

const KindInfo& kind_of(const std::string& name) {
  std::vector<std::string> names;
  for (const KindInfo& info : kinds()) {
    if (info.name == name) return info;
    names.emplace_back(info.name);
  }
  throw_usage("no fault '" + name + "' (faults: " + join(names) + ")");
}

}  // namespace

const char* to_string(FaultKind kind) noexcept {
  for (const KindInfo& info : kinds())
    if (info.kind == kind) return info.name;
  return "slow";
}

NumberSet NumberSet::parse(const std::string& key, const std::string& text) {
  NumberSet set;
  for (const std::string& part : split(text, '+')) {
    const auto ends = split(part, '-');
    if (ends.size() > 2 || ends[0].empty()) bad(key, text, "a list like 1+4 or a range like 2-5");
    const auto first = whole<std::int64_t>(key, ends[0]);
    const auto last = ends.size() == 2 ? whole<std::int64_t>(key, ends[1]) : first;
    if (first < 0 || last < first) bad(key, text, "a list like 1+4 or a range like 2-5");
    set.ranges_.emplace_back(first, last);
  }
  return set;
}

bool NumberSet::contains(std::int64_t n) const noexcept {
  return everything() || std::any_of(ranges_.begin(), ranges_.end(),
                                     [n](const auto& r) { return r.first <= n && n <= r.second; });
}

bool FaultSpec::hits_rank(int rank, const std::string& node_name, int node_index, int device) const {
  if (kind == FaultKind::slowlink) return rank == pair_destination;
  if (kind == FaultKind::diskfull) return rank == 0;
  if (!ranks.contains(rank) || !devices.contains(device)) return false;
  if (nodes.empty()) return true;
  return std::any_of(nodes.begin(), nodes.end(), [&](const std::string& wanted) {
    return wanted == std::to_string(node_index) || glob_match(wanted, node_name);
  });
}

bool FaultSpec::hits_case(const std::string& suite_name, const std::string& case_name) const {
  return glob_match(suite, suite_name) && glob_match(case_glob, case_name);
}

FaultSpec parse_fault(const std::string& text) {
  if (std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
    throw_usage("a control character in the text of a fault");
  const auto colon = text.find(':');
  const KindInfo& info = kind_of(text.substr(0, colon));
  FaultSpec spec;
  spec.kind = info.kind;
  spec.text = text;
  const auto keys = keys_of(info);
  std::vector<std::string> seen;
  const auto in = [](const std::vector<std::string>& names, const std::string& key) {
    return std::find(names.begin(), names.end(), key) != names.end();
  };
  const auto fields =
      colon == std::string::npos ? std::vector<std::string>{} : split(text.substr(colon + 1), ',');
  for (const std::string& field : fields) {
    const auto equals = field.find('=');
    const std::string key = field.substr(0, equals);
    if (!in(keys, key))
      throw_usage(std::string(info.name) + " has no key '" + key + "' (keys: " + join(keys) + ")");
    if (equals == std::string::npos || equals + 1 == field.size())
      throw_usage(key + " needs a value in '" + text + "'");
    if (in(seen, key)) throw_usage(key + " is given twice in '" + text + "'");
    seen.push_back(key);
    setters().at(key)(spec, key, field.substr(equals + 1));
  }
  for (const std::string& key : info.required)
    if (!in(seen, key)) throw_usage(std::string(info.name) + " needs " + key + "= in '" + text + "'");
  if (spec.kind == FaultKind::clock && spec.clock_ppm == 0 && spec.clock_offset_s == 0)
    throw_usage("clock needs ppm= or offset_s= in '" + text + "'");
  return spec;
}

}  // namespace assay
