// SPDX-License-Identifier: Apache-2.0
#include "suites/burn/burn_suite.hpp"

#include "product/tuning.hpp"
#include "suites/burn/burn_cases.hpp"
#include "suites/burn/burn_plan.hpp"

namespace assay {

std::vector<OptionSpec> BurnSuite::options() const { return burn::burn_options(); }

std::vector<MetricInfo> BurnSuite::metrics() const {
  return {
      {"mixed", "throughput", "FLOP/s", "higher", "products while all else goes on, per window of time"},
      {"mixed", "bandwidth", "B/s", "higher", "memory verified and rewritten meanwhile"},
      {"mixed", "busbw", "B/s", "higher", "all-reduce among all ranks meanwhile"},
      {"mixed", "host_throughput", "FLOP/s", "higher", "products of the host beside its GPUs meanwhile"},
      {"mixed", "errors", "count", "lower", "wrong results of all parts"},
      {"mixed", "power", "W", "none", "mean while all burn, from the energy counter of the GPU or of the processors"},
      {"pulse-<N>ms-d<N>", "throughput", "FLOP/s", "higher", "products in the high phase of a full pulse"},
      {"pulse-<N>ms-d<N>", "lag", "s", "lower", "from where a pulse should begin to its first work"},
      {"pulse-<N>ms-d<N>", "power_high", "W", "none", "mean power in the high phases, less their edges"},
      {"pulse-<N>ms-d<N>", "power_low", "W", "none", "mean power in the low phases, less their edges"},
      {"pulse-<N>ms-d<N>", "power_swing", "W", "none", "the difference of these two"},
      {"pulse-<N>ms-d<N>", "errors", "count", "lower", "wrong results of all pulses"},
  };
}

std::vector<Case> BurnSuite::plan(const PlanInput& input) const { return burn::plan_cases(input); }

/// Products of pulses are as small as the slowest device wants them, so only those of burns are tuned.
void BurnSuite::prepare(const std::vector<Case>& cases, const Config& config, Device& device, Communicator& world, const std::function<bool()>& go_on) {
  for (const Case& c : cases) {
    if (c.suite != name() || c.name.starts_with("pulse") || !c.not_applicable.empty()) continue;
    const burn::Mixed m = burn::mixed_of(c);
    if (!m.has(burn::Part::compute)) continue;
    if (const auto found = tune_for_all(device, world, m.type, plain_product(m.type, {m.n, m.n, m.n}), config.seed, go_on)) algorithms_[c.base_path()] = *found;
  }
}

void BurnSuite::run(const Case& c, Context& context) {
  if (c.name.starts_with("pulse")) return burn::run_pulse(c, context);
  const auto algorithm = algorithms_.find(c.base_path());
  burn::run_mixed(c, algorithm == algorithms_.end() ? nullptr : &algorithm->second, context);
}

}  // namespace assay
