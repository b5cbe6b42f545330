// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "suite/suite.hpp"

namespace assay {

/// What every node is made of, as counts and states. Nothing is timed: the probe ran before the plan, and
/// this case puts its numbers into the file as metrics of the nodes; the full description is in /inventory.
class InventorySuite : public Suite {
 public:
  std::string_view name() const noexcept override { return "inventory"; }
  std::string_view summary() const noexcept override {
    return "hardware and settings of every node: CPUs, memory, NICs, links";
  }
  std::vector<OptionSpec> options() const override { return {}; }
  std::vector<results::MetricSpec> metrics() const override;
  std::vector<std::string> checkers() const override { return {results::no_checks}; }
  FaultPoints fault_points() const override { return {{}, false, false}; }
  std::vector<Case> plan(const PlanInput& input) const override;
  void run(const Case& c, Context& context) override;
};

}  // namespace assay
