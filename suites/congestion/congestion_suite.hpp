// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "suite/suite.hpp"

namespace assay {

/// What other jobs' traffic costs: small measurements on some nodes alone and while the others flood the
/// network. See README.md beside this file.
class CongestionSuite final : public Suite {
 public:
  std::string_view name() const noexcept override { return "congestion"; }
  std::string_view summary() const noexcept override {
    return "latency, bandwidth and all-reduce of some nodes while the others flood the network";
  }
  std::vector<OptionSpec> options() const override { return {}; }
  std::vector<results::MetricSpec> metrics() const override;
  std::vector<std::string> checkers() const override { return {"pair"}; }
  std::vector<Case> plan(const PlanInput& input) const override;
  void run(const Case& c, Context& context) override;
};

}  // namespace assay
