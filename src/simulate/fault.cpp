// SPDX-License-Identifier: Apache-2.0
#include "simulate/fault.hpp"

#include <cmath>

#include "base/error.hpp"
#include "base/glob.hpp"
#include "config/suggest.hpp"
#include "simulate/catalogue.hpp"

namespace assay::simulate {
namespace {

using namespace fault_grammar;

const std::vector<KindRow>& kinds() {
  const auto row = [](Kind kind, const char* name, std::vector<std::string> keys,
                      std::vector<std::string> required = {}) {
    return KindRow{static_cast<int>(kind), name, std::move(keys), std::move(required)};
  };
  static const std::vector<KindRow> table = {
      row(Kind::slow, "slow",
          {"factor", "percent", "duty", "node", "device", "nic", "leaf", "pair", "direction", "suite", "case",
           "metric"},
          {"factor|percent"}),
      row(Kind::throttle, "throttle", {"factor", "percent", "duty", "node", "device"}, {"factor|percent"}),
      row(Kind::drift, "drift", {"factor", "percent", "node", "device", "suite", "case", "metric"},
          {"factor|percent"}),
      row(Kind::slowlink, "slowlink", {"pair", "factor", "percent", "duty", "suite", "case", "metric"},
          {"factor|percent", "pair"}),
      row(Kind::bitflip, "bitflip", {"target", "node", "device"}, {"node"}),
      row(Kind::bitflip, "corrupt", {"target", "node", "device"}, {"node"}),
      row(Kind::hang, "hang", {"node", "device"}, {"node"}),
      row(Kind::lost, "crash", {"node", "device"}, {"node"}),
      row(Kind::lost, "lost", {"node", "device"}, {"node"}),
      row(Kind::dead, "dead", {"node", "device", "nic", "pair", "suite", "case", "metric", "duty", "value"}),
      row(Kind::missing, "missing", {"node", "what"}, {"node"}),
  };
  return table;
}

Reader dead_value(double& to) {
  return [&to](const std::string& key, const std::string& value) {
    if (value == "inf" || value == "-inf") {
      to = value == "inf" ? HUGE_VAL : -HUGE_VAL;
      return;
    }
    read_real(to)(key, value);
    if (to > 0) bad(key, value, "must be 0, below it, inf or -inf");
  };
}

void check_place(const Fault& f, const Parsed& given) {
  if (given.has("device") + given.has("nic") + given.has("leaf") + given.has("pair") > 1)
    throw_usage("device, nic, leaf and pair name different parts in '" + f.text + "'");
  if (given.has("leaf") && given.has("node")) throw_usage("a leaf is no part of a node in '" + f.text + "'");
  if (given.has("direction") && !given.has("nic") && !given.has("leaf"))
    throw_usage("direction needs nic= or leaf= in '" + f.text + "'");
}

}  // namespace

bool Fault::hits_device(std::int64_t node, const std::string& node_name, std::int64_t device) const {
  return !of_network() && pair_source < 0 && devices.contains(device) && nodes.contains(node, node_name);
}

bool Fault::hits_metric(const std::string& suite_name, const std::string& case_name,
                        const std::string& metric_name) const {
  return hits_case(suite_name, case_name) && glob_match(metric, metric_name);
}

std::vector<HelpRow> kinds_help() {
  std::vector<HelpRow> rows;
  for (const KindRow& row : kinds()) {
    std::string needs;
    for (const std::string& key : row.required) needs += (needs.empty() ? "; needs " : " and ") + key;
    rows.push_back({row.name, join(row.keys) + needs});
  }
  return rows;
}

std::vector<HelpRow> keys_help() {
  return {{"node", "3+7, 2-5 or a glob on the name, sim1? [all]"},
          {"device, nic, leaf", "number within the node; of leaves within the cluster: 1+4 or 2-5 [all]"},
          {"pair", "two ranks, SRC>DST"},
          {"direction", "of nic or leaf: tx, rx or both [both]"},
          {"suite, case, metric", "globs [*]"},
          {"percent, factor", "rate lost, 0 to 100; rate left, 0 to 1"},
          {"duty", "share of samples that are hit, above 0 to 1 [1]"},
          {"target", "whose values are changed: " + join(targets()) + " [" + targets().front() + "]"},
          {"what", "part that is missing: " + join(parts_of_a_node()) + " [" + Fault{}.what + "]"},
          {"value", "measured instead of a rate: 0, inf, -inf or a negative number [0]"}};
}

Fault parse_fault(const std::string& typed) {
  Fault fault;
  fault.text = typed;
  fault.target = targets().front();
  Readers readers = common_readers(fault);
  readers.insert({{"percent", read_percent(fault.factor)},
                  {"value", dead_value(fault.value)},
                  {"nic", read_numbers(fault.nics)},
                  {"leaf", read_numbers(fault.leaves)},
                  {"direction", read_one_of(fault.direction, {"tx", "rx", "both"})},
                  {"target", read_one_of(fault.target, targets())},
                  {"what", read_one_of(fault.what, parts_of_a_node())}});
  const Parsed parsed = parse(typed, kinds(), readers);
  fault.kind = static_cast<Kind>(parsed.kind);
  if (parsed.has("factor") && parsed.has("percent"))
    throw_usage("factor and percent are both given in '" + typed + "'");
  check_place(fault, parsed);
  return fault;
}

}  // namespace assay::simulate
