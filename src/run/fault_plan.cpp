// SPDX-License-Identifier: Apache-2.0
#include "run/fault_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/glob.hpp"

namespace assay {
namespace {

/// The suite whose checker looks at a target.
std::string suite_of_target(const std::string& target) {
  if (target == "message") return "p2p";
  if (target == "gradient" || target == "parameter") return "train";
  return target;
}

/// What the parts of a burn check.
bool burns(const std::string& target) { return target == "gemm" || target == "memory" || target == "allreduce"; }

bool suite_can_have(const FaultSpec& fault, const std::string& suite) {
  switch (fault.kind) {
    case FaultKind::bitflip:
    case FaultKind::nan:
      return suite == suite_of_target(fault.target) || (suite == "burn" && burns(fault.target));
    case FaultKind::drop:
    case FaultKind::slowlink:
      return suite == "p2p";
    case FaultKind::slow:
    case FaultKind::stall:
      return suite != "inventory";  // times nothing
    default:
      return suite != "inventory" || !fault.step;
  }
}

/// "<dtype>-n<N>" -> "*-n**": what a case of that operation may be called.
std::string glob_of(const std::string& operation) {
  std::string glob;
  bool inside = false;
  for (const char ch : operation) {
    if (ch == '<') glob += '*';
    inside = ch == '<' || (inside && ch != '>');
    if (!inside && ch != '>') glob += ch;
  }
  return glob + "*";
}

bool has_metric(const std::string& wanted, const std::string& case_name,
                const std::vector<MetricInfo>& metrics) {
  const auto matches = [](const std::string& glob, const std::string& text) {
    return glob_match(glob, text);
  };
  return wanted == "*" || std::any_of(metrics.begin(), metrics.end(), [&](const MetricInfo& m) {
           return matches(wanted, m.metric) && matches(glob_of(m.case_operation), case_name);
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

bool fault_hits_case(const FaultSpec& fault, const Case& c, const std::vector<MetricInfo>& metrics) {
  return suite_can_have(fault, c.suite) && fault.hits_case(c.suite, c.base_path().substr(c.suite.size() + 1)) &&
         has_metric(fault.metric, c.name, metrics);
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
