// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "suite/suite.hpp"

namespace assay {

/// Latency and bandwidth of pairs of ranks, inside nodes and across them. See README.md beside this file.
class P2pSuite final : public Suite {
 public:
  std::string_view name() const noexcept override { return "p2p"; }
  std::string_view summary() const noexcept override {
    return "latency and bandwidth of every link between ranks, inside nodes and across them";
  }
  std::vector<OptionSpec> options() const override;
  std::vector<results::MetricSpec> metrics() const override;
  std::vector<std::string> checkers() const override { return {"pair"}; }
  FaultPoints fault_points() const override { return {{"message"}, true}; }
  std::vector<Case> plan(const PlanInput& input) const override;
  std::vector<Pairing> pairings(const Case& c, const PlanInput& input,
                                const EntityTable& entities) const override;
  void run(const Case& c, Context& context) override;
};

}  // namespace assay
