// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "suite/suite.hpp"

namespace assay {

/// Everything at once, and power pulses. README.md beside this file says what is done and how.
class BurnSuite final : public Suite {
 public:
  std::string_view name() const noexcept override { return "burn"; }
  std::string_view summary() const noexcept override {
    return "compute, memory, links and host at the same time, and power pulses, every result verified";
  }
  std::vector<OptionSpec> options() const override;
  std::vector<results::MetricSpec> metrics() const override;
  std::vector<std::string> checkers() const override { return {"burn"}; }
  FaultPoints fault_points() const override { return {{"gemm", "memory", "allreduce"}}; }
  std::vector<Case> plan(const PlanInput& input) const override;
  void prepare(const std::vector<Case>& cases, const Config& config, Device& device, Communicator& world,
               const std::function<bool()>& go_on) override;
  void run(const Case& c, Context& context) override;

 private:
  std::map<std::string, GemmAlgorithm>
      algorithms_;  ///< of the products of cases, by name; none where libraries choose by themselves
};

}  // namespace assay
