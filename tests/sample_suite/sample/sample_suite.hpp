// SPDX-License-Identifier: Apache-2.0
// A whole suite in one folder, outside suites/: what its author writes, and nothing else.
#pragma once

#include "suite/suite.hpp"

namespace assay {

/// Sums numbers in memory: one bandwidth per rank, all ranks at once, every sum checked.
class SampleSuite final : public Suite {
 public:
  std::string_view name() const noexcept override { return "sample"; }
  std::string_view summary() const noexcept override { return "sums of numbers in memory"; }
  std::vector<OptionSpec> options() const override;
  std::vector<results::MetricSpec> metrics() const override;
  std::vector<std::string> checkers() const override { return {"sums"}; }
  FaultPoints fault_points() const override { return {{"sum"}}; }
  std::vector<Case> plan(const PlanInput& input) const override;
  void run(const Case& c, Context& context) override;
};

}  // namespace assay
