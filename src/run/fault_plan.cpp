// SPDX-License-Identifier: Apache-2.0
#include "run/fault_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/glob.hpp"

namespace assay {
namespace {

bool can_have(const FaultSpec& fault, const Case& c) {
  switch (fault.kind) {
    case FaultKind::bitflip:
    case FaultKind::nan:
      return std::find(c.faults.targets.begin(), c.faults.targets.end(), fault.target) !=
             c.faults.targets.end();
    case FaultKind::drop:
    case FaultKind::slowlink: return c.faults.messages;
    case FaultKind::slow:
    case FaultKind::stall: return c.faults.times;
    default: return c.faults.times || !fault.step;
  }
}

bool has_metric(const std::string& wanted, const Case& c, const std::vector<results::MetricSpec>& metrics) {
  return wanted == "*" || std::any_of(metrics.begin(), metrics.end(), [&](const results::MetricSpec& m) {
           return m.operation == c.operation && glob_match(wanted, m.name);
         });
}

bool hits_some_rank(const FaultSpec& fault, const Topology& topology) {
  const bool ends_exist = fault.pair_source < topology.size() && fault.pair_destination < topology.size();
  return ends_exist && std::any_of(topology.ranks.begin(), topology.ranks.end(), [&](const RankPlace& place) {
           const auto& node = topology.nodes[static_cast<std::size_t>(place.node)];
           return fault.hits_rank(place.rank, node.hostname, place.node, place.local_rank);
         });
}

bool hits_some_case(const FaultSpec& fault, const Plan& plan,
                    const std::vector<std::unique_ptr<Suite>>& suites) {
  return std::any_of(suites.begin(), suites.end(), [&](const auto& suite) {
    const auto metrics = suite->metrics();
    return std::any_of(plan.cases.begin(), plan.cases.end(), [&](const Case& c) {
      return c.suite == suite->name() && c.not_applicable.empty() && fault_hits_case(fault, c, metrics);
    });
  });
}

}  // namespace

bool fault_hits_case(const FaultSpec& fault, const Case& c, const std::vector<results::MetricSpec>& metrics) {
  return can_have(fault, c) && fault.hits_case(c.suite, c.base_path().substr(c.suite.size() + 1)) &&
         has_metric(fault.metric, c, metrics);
}

void check_targets(const std::vector<FaultSpec>& faults, const std::vector<std::unique_ptr<Suite>>& suites) {
  std::vector<std::string> known;
  for (const auto& suite : suites)
    for (const std::string& target : suite->fault_points().targets)
      if (std::find(known.begin(), known.end(), target) == known.end()) known.push_back(target);
  for (const FaultSpec& fault : faults) {
    if (fault.target.empty() || std::find(known.begin(), known.end(), fault.target) != known.end()) continue;
    throw_usage(fmt::format("--inject: target={}: one of {}", fault.target, fmt::join(known, ", ")));
  }
}

void check_faults(const std::vector<FaultSpec>& faults, const Plan& plan, const Topology& topology,
                  const std::vector<std::unique_ptr<Suite>>& suites) {
  for (const FaultSpec& fault : faults) {
    if (!hits_some_rank(fault, topology))
      throw_usage(
          fmt::format("--inject: {}: matches none of the {} ranks of this job", fault.text, topology.size()));
    if (!hits_some_case(fault, plan, suites))
      throw_usage(fmt::format("--inject: {}: matches no planned case", fault.text));
  }
}

}  // namespace assay
