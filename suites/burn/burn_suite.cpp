// SPDX-License-Identifier: Apache-2.0
#include "suites/burn/burn_suite.hpp"

#include "suites/burn/burn_cases.hpp"
#include "suites/burn/burn_metrics.hpp"
#include "suites/burn/burn_plan.hpp"
#include "workload/tuning.hpp"

namespace assay {

std::vector<OptionSpec> BurnSuite::options() const { return burn::burn_options(); }

std::vector<results::MetricSpec> BurnSuite::metrics() const { return burn::metrics().all(); }

std::vector<Case> BurnSuite::plan(const PlanInput& input) const { return burn::plan_cases(input); }

/// Products of pulses are as small as the slowest device needs, so only those of burns are tuned.
void BurnSuite::prepare(const std::vector<Case>& cases, const Config& config, Device& device,
                        Communicator& world, const std::function<bool()>& go_on) {
  for (const Case& c : cases) {
    if (c.suite != name() || c.operation == "pulse" || !c.not_applicable.empty()) continue;
    const burn::Mixed m = burn::mixed_of(c);
    if (!m.has(burn::Component::compute)) continue;
    if (const auto found = workload::tune_for_all(device, world, m.type,
                                                  plain_product(m.type, {m.n, m.n, m.n}), config.seed, go_on))
      algorithms_[c.base_path()] = *found;
  }
}

void BurnSuite::run(const Case& c, Context& context) {
  if (c.operation == "pulse") return burn::run_pulse(c, context);
  const auto algorithm = algorithms_.find(c.base_path());
  burn::run_mixed(c, algorithm == algorithms_.end() ? nullptr : &algorithm->second, context);
}

}  // namespace assay
