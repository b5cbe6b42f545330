// SPDX-License-Identifier: Apache-2.0
#include "suites/inventory/inventory_suite.hpp"

#include <algorithm>
#include <cmath>

#include "base/clock.hpp"
#include "topology/inventory_tables.hpp"

namespace assay {
namespace {

struct NodeMetric {
  const char *name, *unit, *explanation;
  double (*value)(const Node&);  ///< NaN where the node does not tell
};

double positive(double value) { return value > 0 ? value : unsupported; }

double nics_up(const Node& node) {
  const auto nics = physical_nics(node);
  return static_cast<double>(
      std::count_if(nics.begin(), nics.end(), [](const Nic* nic) { return nic->state == "up"; }));
}

constexpr NodeMetric kMetrics[] = {
    {"sockets", "count", "CPU packages", [](const Node& n) { return positive(n.sockets); }},
    {"cores", "count", "physical cores of the machine", [](const Node& n) { return positive(n.cores); }},
    {"pus", "count", "hardware threads of the machine", [](const Node& n) { return positive(n.pus); }},
    {"numa_domains", "count", "NUMA domains",
     [](const Node& n) { return positive(static_cast<double>(n.numa.size())); }},
    {"memory", "B", "memory of the machine",
     [](const Node& n) { return positive(static_cast<double>(n.memory_bytes)); }},
    {"last_level_cache", "B", "sum of the last-level caches",
     [](const Node& n) { return positive(static_cast<double>(n.llc_bytes_total())); }},
    {"dimms", "count", "populated memory slots",
     [](const Node& n) { return positive(static_cast<double>(n.dimms.size())); }},
    {"memory_bandwidth", "B/s", "channels x configured speed x width",
     [](const Node& n) { return n.memory_bandwidth_bytes_per_s; }},
    {"max_clock", "Hz", "highest CPU clock", [](const Node& n) { return n.max_clock_hz; }},
    {"nics", "count", "physical NIC ports",
     [](const Node& n) { return static_cast<double>(physical_nics(n).size()); }},
    {"nics_up", "count", "physical NIC ports that are up", nics_up},
    {"pci_links", "count", "PCIe links with a known speed",
     [](const Node& n) { return positive(static_cast<double>(n.pci_links.size())); }},
};

// A metric is part of the case when all nodes can tell it; where only some can, /inventory shows who.
std::vector<const NodeMetric*> told_by_all(const Topology& topology) {
  std::vector<const NodeMetric*> told;
  for (const NodeMetric& metric : kMetrics) {
    const auto& nodes = topology.nodes;
    if (std::none_of(nodes.begin(), nodes.end(), [&](const Node& n) { return std::isnan(metric.value(n)); }))
      told.push_back(&metric);
  }
  return told;
}

}  // namespace

namespace {

results::MetricSpec spec_of(const NodeMetric& m) {
  return {m.name, m.unit,        results::Better::none, false,  results::Role::metric,
          false,  m.explanation, results::Judging{},    "node", "node"};
}

}  // namespace

std::vector<results::MetricSpec> InventorySuite::metrics() const {
  std::vector<results::MetricSpec> specs;
  for (const NodeMetric& metric : kMetrics) specs.push_back(spec_of(metric));
  return specs;
}

std::vector<Case> InventorySuite::plan(const PlanInput& input) const {
  Case c;
  c.suite = "inventory";
  c.name = c.operation = "node";
  c.stage = Stage::inventory;
  c.required = true;
  c.entity_kind = "node";
  c.entities = static_cast<std::int64_t>(input.topology.nodes.size());
  c.seconds = c.min_seconds = 0.01;
  return {c};
}

void InventorySuite::run(const Case& /*c*/, Context& context) {
  const RankPlace& me = context.topology.me();
  if (me.local_rank != 0) return;  // one rank reports for its node
  const Node& node = context.topology.my_node();
  const auto told = told_by_all(context.topology);
  for (const NodeMetric* metric : told) {
    context.record.declare(spec_of(*metric));
  }
  CaseRecord::Row& row = context.record.add_row(context.entities.node(me.node));
  row.t.push_back(context.since_start(now_s()));
  row.block.push_back(0);
  for (const NodeMetric* metric : told) row.values[metric->name] = {metric->value(node)};
}

}  // namespace assay
