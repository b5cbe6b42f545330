// SPDX-License-Identifier: Apache-2.0
#include "suites/train/frontier.hpp"

#include <algorithm>

#include "measure/statistics.hpp"

namespace assay::train {

Frontier frontier_of(std::span<const StepReport> reports) {
  Frontier frontier;
  double before = 0;
  for (std::size_t stage = 0; stage < frontier_stages; ++stage) {
    double furthest = -1;
    if (stage == 3) before = 0;
    for (std::size_t r = 0; r < reports.size(); ++r) {
      const StepReport& s = reports[r];
      const double at = stage == 0   ? s.data_s
                        : stage == 1 ? s.data_s + s.forward_s
                        : stage == 2 ? s.data_s + s.forward_s + s.backward_s
                                     : s.optimizer_s;
      if (at <= furthest) continue;
      furthest = at;
      frontier.rank[stage] = static_cast<int>(r);
    }
    frontier.growth_s[stage] = furthest - before;
    before = furthest;
  }
  return frontier;
}

void FrontierSum::add(const Frontier& frontier, int me) {
  for (std::size_t stage = 0; stage < frontier_stages; ++stage) {
    all_s_ += frontier.growth_s[stage];
    if (frontier.rank[stage] == me) mine_s_[stage] += frontier.growth_s[stage];
  }
}

double FrontierSum::share(std::size_t stage) const noexcept {
  return all_s_ > 0 ? mine_s_[stage] / all_s_ : 0;
}

std::size_t FrontierSum::worst() const noexcept {
  return static_cast<std::size_t>(std::max_element(mine_s_.begin(), mine_s_.end()) - mine_s_.begin());
}

StragglerScore straggler_score(std::span<const double> medians, int me, std::span<const double> own) {
  StragglerScore score;
  if (medians.empty() || own.empty()) return score;
  const double mine = medians[static_cast<std::size_t>(me)];
  score.relative = *std::min_element(medians.begin(), medians.end()) / mine;
  score.individual = quantile(own, 0.05) / mine;  // the middle of the fastest tenth
  const double excess = mine - median(medians);
  score.straggles = medians.size() > 1 && score.relative < 0.95 && excess > 5 * mad_sigma(medians);
  return score;
}

}  // namespace assay::train
