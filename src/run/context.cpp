// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "run/suite.hpp"

namespace assay {

SamplingPlan Context::sampling(double seconds) const {
  SamplingPlan plan;
  plan.max_seconds = seconds;
  plan.warmup_seconds = std::min(0.05, seconds / 8);
  switch (config.level) {
    case Level::smoke:
      plan.min_samples = 5;
      plan.relative_ci = 0.02;
      break;
    case Level::quick:
      plan.min_samples = 9;
      plan.relative_ci = 0.005;
      break;
    default:
      plan.min_samples = 15;
      plan.relative_ci = 0.0025;
      plan.warmup_seconds = std::min(0.25, seconds / 10);
      break;
  }
  return plan;
}

void Context::take_turns(int turns, const std::function<void()>& turn) {
  auto order = random.child("turns").permutation(static_cast<std::size_t>(node.size()));
  if (turns > 0 && order.size() > static_cast<std::size_t>(turns)) order.resize(static_cast<std::size_t>(turns));
  for (const std::size_t local : order) {
    if (node.rank() == static_cast<int>(local)) turn();
    node.quiet_barrier();
  }
}

}  // namespace assay
