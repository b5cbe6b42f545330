// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "suite/suite.hpp"
#include "suites/gemm/algorithms.hpp"

namespace assay {

/// Matrix multiplication through the device's BLAS: throughput alone and together, the device's own FMA peak,
/// and an exact-integer pass. README.md beside this file says what is measured and how.
class GemmSuite final : public Suite {
 public:
  std::string_view name() const noexcept override { return "gemm"; }
  std::string_view summary() const noexcept override {
    return "matrix multiplication: throughput, efficiency against the measured FMA peak, exact results";
  }
  std::vector<OptionSpec> options() const override;
  std::vector<results::MetricSpec> metrics() const override;
  std::vector<std::string> checkers() const override { return {"gemm"}; }
  FaultPoints fault_points() const override { return {{"gemm"}}; }
  std::vector<Case> plan(const PlanInput& input) const override;
  void prepare(const std::vector<Case>& cases, const Config& config, Device& device, Communicator& world,
               const std::function<bool()>& go_on) override;
  void run(const Case& c, Context& context) override;

 private:
  gemm::Choices choices_;
};

}  // namespace assay
