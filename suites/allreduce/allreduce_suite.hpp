// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "suite/suite.hpp"

namespace assay {

/// All-reduce (and, on request, other collectives) by size in node, leader, world and random-group
/// communicators. See README.md beside this file.
class AllreduceSuite final : public Suite {
 public:
  std::string_view name() const noexcept override { return "allreduce"; }
  std::string_view summary() const noexcept override {
    return "collectives in nodes, between nodes and over all ranks, by size";
  }
  std::vector<OptionSpec> options() const override;
  std::vector<results::MetricSpec> metrics() const override;
  std::vector<std::string> checkers() const override { return {"allreduce"}; }
  FaultPoints fault_points() const override { return {{"allreduce"}}; }
  std::vector<Case> plan(const PlanInput& input) const override;
  void run(const Case& c, Context& context) override;
};

}  // namespace assay
