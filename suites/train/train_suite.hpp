// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "suite/suite.hpp"

namespace assay {

/// A small GPT trained data parallel on tokens of exactly known entropy: throughput, stages, regret, replicas
/// that agree bit by bit. README.md beside this file says what is measured and how.
class TrainSuite final : public Suite {
 public:
  std::string_view name() const noexcept override { return "train"; }
  std::string_view summary() const noexcept override {
    return "data-parallel training of a small GPT: throughput, stages, regret, equal replicas";
  }
  std::vector<OptionSpec> options() const override;
  std::vector<results::MetricSpec> metrics() const override;
  std::vector<std::string> checkers() const override { return {"train"}; }
  FaultPoints fault_points() const override { return {{"gradient", "parameter"}}; }
  std::vector<Case> plan(const PlanInput& input) const override;
  void prepare(const std::vector<Case>& cases, const Config& config, Device& device, Communicator& world,
               const std::function<bool()>& go_on) override;
  void run(const Case& c, Context& context) override;
  std::function<void(pid_t)> clean_up(const Config& config) const override;

 private:
  /// Of a model's products; no algorithm where the library chooses by itself or time was over.
  struct Tuned {
    std::size_t products = 0;
    std::vector<std::string> algorithms;  ///< in words
  };
  std::map<std::string, Tuned> tuned_;  ///< by train::products_key
};

}  // namespace assay
