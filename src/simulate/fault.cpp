// SPDX-License-Identifier: Apache-2.0
#include "simulate/fault.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "base/error.hpp"
#include "base/glob.hpp"
#include "config/fault_text.hpp"
#include "simulate/catalogue.hpp"

namespace assay::simulate {
namespace {

using namespace fault_text;

struct KindInfo {
  Kind kind;
  const char* name;
  std::vector<std::string> keys;
  bool rate;  ///< needs factor= or percent=
};

const std::vector<KindInfo>& kinds() {
  static const std::vector<KindInfo> table = {
      {Kind::slow,
       "slow",
       {"factor", "percent", "duty", "node", "device", "nic", "leaf", "pair", "direction", "suite", "case",
        "metric"},
       true},
      {Kind::throttle, "throttle", {"factor", "percent", "duty", "node", "device"}, true},
      {Kind::drift, "drift", {"factor", "percent", "node", "device", "suite", "case", "metric"}, true},
      {Kind::slowlink, "slowlink", {"pair", "factor", "percent", "duty", "suite", "case", "metric"}, true},
      {Kind::bitflip, "bitflip", {"target", "node", "device"}, false},
      {Kind::bitflip, "corrupt", {"target", "node", "device"}, false},
      {Kind::hang, "hang", {"node", "device"}, false},
      {Kind::lost, "crash", {"node", "device"}, false},
      {Kind::lost, "lost", {"node", "device"}, false},
      {Kind::dead, "dead", {"node", "device", "suite", "case", "metric", "duty", "value"}, false},
      {Kind::missing, "missing", {"node", "what"}, false},
  };
  return table;
}

std::int64_t rank(const std::string& text, const std::string& whole) {
  std::int64_t value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0)
    bad("pair", whole, "two ranks as SRC>DST");
  return value;
}

void set_pair(Fault& f, const std::string& text) {
  const auto ends = split(text, '>');
  if (ends.size() != 2) bad("pair", text, "two ranks as SRC>DST");
  f.pair_source = rank(ends[0], text);
  f.pair_destination = rank(ends[1], text);
  if (f.pair_source == f.pair_destination) bad("pair", text, "a rank has no link to itself");
}

using Setter = void (*)(Fault&, const std::string& text);

const std::map<std::string, Setter>& setters() {
  static const std::map<std::string, Setter> table = {
      {"factor", [](Fault& f, const std::string& v) { f.factor = fraction("factor", v, false); }},
      {"percent",
       [](Fault& f, const std::string& v) {
         const double percent = real("percent", v);
         if (percent <= 0 || percent >= 100) bad("percent", v, "must be between 0 and 100, both excluded");
         f.factor = 1 - percent / 100;
       }},
      {"duty", [](Fault& f, const std::string& v) { f.duty = fraction("duty", v, true); }},
      {"value",
       [](Fault& f, const std::string& v) {
         if (v == "inf" || v == "-inf") {
           f.value = v == "inf" ? HUGE_VAL : -HUGE_VAL;
           return;
         }
         f.value = real("value", v);
         if (f.value > 0) bad("value", v, "must be 0, below it, inf or -inf");
       }},
      {"node", [](Fault& f, const std::string& v) { f.nodes = split(v, '+'); }},
      {"device",
       [](Fault& f, const std::string& v) {
         f.devices = NumberSet::parse("device", v);
         f.has_device = true;
       }},
      {"nic",
       [](Fault& f, const std::string& v) {
         f.nics = NumberSet::parse("nic", v);
         f.has_nic = true;
       }},
      {"leaf",
       [](Fault& f, const std::string& v) {
         f.leaves = NumberSet::parse("leaf", v);
         f.has_leaf = true;
       }},
      {"pair", set_pair},
      {"direction",
       [](Fault& f, const std::string& v) {
         f.direction = one_of("direction", v, {"tx", "rx", "both"});
       }},
      {"suite", [](Fault& f, const std::string& v) { f.suite = v; }},
      {"case", [](Fault& f, const std::string& v) { f.case_glob = v; }},
      {"metric", [](Fault& f, const std::string& v) { f.metric = v; }},
      {"target", [](Fault& f, const std::string& v) { f.target = one_of("target", v, targets()); }},
      {"what", [](Fault& f, const std::string& v) { f.what = one_of("what", v, parts_of_a_node()); }},
  };
  return table;
}

void check_place(const Fault& f, const std::vector<std::string>& seen) {
  const auto given = [&](const char* key) { return contains(seen, key); };
  if (f.kind == Kind::slowlink && !given("pair")) throw_usage("slowlink needs pair= in '" + f.text + "'");
  if (given("device") + given("nic") + given("leaf") + given("pair") > 1)
    throw_usage("device, nic, leaf and pair name different parts in '" + f.text + "'");
  if (f.has_leaf && given("node")) throw_usage("a leaf is no part of a node in '" + f.text + "'");
  if (given("direction") && !f.has_nic && !f.has_leaf)
    throw_usage("direction needs nic= or leaf= in '" + f.text + "'");
  const bool place =
      f.kind == Kind::bitflip || f.kind == Kind::hang || f.kind == Kind::lost || f.kind == Kind::missing;
  if (place && !given("node")) throw_usage("'" + f.text + "' needs node=");
}

bool is_number(const std::string& text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || c == '-'; });
}

}  // namespace

bool Fault::hits_node(std::int64_t index, const std::string& name) const {
  if (nodes.empty()) return true;
  return std::any_of(nodes.begin(), nodes.end(), [&](const std::string& wanted) {
    return is_number(wanted) ? NumberSet::parse("node", wanted).contains(index) : glob_match(wanted, name);
  });
}

bool Fault::hits_device(std::int64_t node, const std::string& node_name, std::int64_t device) const {
  return !of_network() && pair_source < 0 && devices.contains(device) && hits_node(node, node_name);
}

bool Fault::hits_metric(const std::string& suite_name, const std::string& case_name,
                        const std::string& metric_name) const {
  return glob_match(suite, suite_name) && glob_match(metric, metric_name) &&
         (glob_match(case_glob, case_name) || glob_match(case_glob, suite_name + "/" + case_name));
}

Fault parse_fault(const std::string& text) {
  const KindInfo& info = find_kind(kinds(), kind_word(text));
  Fault fault;
  fault.kind = info.kind;
  fault.text = text;
  const auto seen =
      each_field(text, info.name, info.keys,
                 [&](const std::string& key, const std::string& value) { setters().at(key)(fault, value); });
  if (contains(seen, "factor") && contains(seen, "percent"))
    throw_usage("factor and percent are both given in '" + text + "'");
  if (info.rate && !contains(seen, "factor") && !contains(seen, "percent"))
    throw_usage(std::string(info.name) + " needs factor= or percent= in '" + text + "'");
  if (fault.target.empty()) fault.target = targets().front();
  check_place(fault, seen);
  for (const std::string& node : fault.nodes)
    if (is_number(node)) NumberSet::parse("node", node);
  return fault;
}

}  // namespace assay::simulate
