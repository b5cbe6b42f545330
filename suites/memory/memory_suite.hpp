// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "suite/suite.hpp"
#include "suites/memory/memory_cases.hpp"

namespace assay {

/// Memory of the device: bandwidth, latency, and RAM patterns over a fraction of it. README.md beside this
/// file says what is measured and how.
class MemorySuite final : public Suite {
 public:
  std::string_view name() const noexcept override { return "memory"; }
  std::string_view summary() const noexcept override {
    return "memory: bandwidth and latency beyond the caches, RAM patterns with every wrong word recorded";
  }
  std::vector<OptionSpec> options() const override;
  std::vector<results::MetricSpec> metrics() const override;
  std::vector<std::string> checkers() const override { return {"memory"}; }
  FaultPoints fault_points() const override { return {{"memory"}}; }
  std::vector<Case> plan(const PlanInput& input) const override;
  void run(const Case& c, Context& context) override;

 private:
  memory::OwnBandwidth own_;
};

}  // namespace assay
