// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "suite/suite.hpp"

namespace assay {

/// Cases that pass, fail, skip and throw on purpose: the tester is tested. Hidden; run by `--suites
/// selftest`.
class SelftestSuite final : public Suite {
 public:
  std::string_view name() const noexcept override { return "selftest"; }
  std::string_view summary() const noexcept override {
    return "cases that pass, fail, skip and throw on purpose";
  }
  bool hidden() const noexcept override { return true; }
  std::vector<OptionSpec> options() const override;
  std::vector<results::MetricSpec> metrics() const override;
  std::vector<std::string> checkers() const override { return {results::no_checks}; }
  std::vector<Case> plan(const PlanInput& input) const override;
  void run(const Case& c, Context& context) override;
};

}  // namespace assay
