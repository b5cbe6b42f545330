// SPDX-License-Identifier: Apache-2.0
#include "config/fault_spec.hpp"

#include <algorithm>
#include <charconv>
#include <map>

#include "base/error.hpp"
#include "base/glob.hpp"
#include "base/units.hpp"
#include "config/fault_text.hpp"

namespace assay {
namespace {

using namespace fault_text;

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
      {FaultKind::slow, "slow", {"factor", "duty", "step", "ramp"}, {"factor"}, by_all},
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
      {"ramp", [](FaultSpec& s, const std::string& k,
                  const std::string& v) { s.ramp_s = quantity(k, v, parse_seconds); }},
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
       // Which there are the suites say: run/fault_plan.hpp.
       [](FaultSpec& s, const std::string&, const std::string& v) { s.target = v; }},
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
  const KindInfo& info = find_kind(kinds(), kind_word(text));
  FaultSpec spec;
  spec.kind = info.kind;
  spec.text = text;
  const auto seen = each_field(
      text, info.name, keys_of(info),
      [&](const std::string& key, const std::string& value) { setters().at(key)(spec, key, value); });
  for (const std::string& key : info.required)
    if (!contains(seen, key)) throw_usage(std::string(info.name) + " needs " + key + "= in '" + text + "'");
  if (spec.kind == FaultKind::clock && spec.clock_ppm == 0 && spec.clock_offset_s == 0)
    throw_usage("clock needs ppm= or offset_s= in '" + text + "'");
  return spec;
}

}  // namespace assay
