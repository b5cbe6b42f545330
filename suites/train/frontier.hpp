// SPDX-License-Identifier: Apache-2.0
// Which rank the others wait for, and in which stage.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "suites/train/step_log.hpp"

namespace assay::train {

inline constexpr std::size_t frontier_stages = 4;
inline constexpr const char* frontier_names[frontier_stages] = {"data", "forward", "backward", "optimizer"};

/// Seconds of one step by (rank, stage): at the end of each stage the frontier is the largest cumulative
/// compute time of any rank, and what it grew by during the stage belongs to the rank that is there last. The
/// growths add up to the time of the step without communication, so nothing is counted twice, and only
/// durations are compared, so clocks need not agree. The optimizer starts over: the reduction of the
/// gradients has lined the ranks up.
struct Frontier {
  std::array<int, frontier_stages> rank{};
  std::array<double, frontier_stages> growth_s{};
};
Frontier frontier_of(std::span<const StepReport> reports);

/// Frontiers of all steps, as one rank keeps them: its own share, and the whole.
class FrontierSum {
 public:
  void add(const Frontier& frontier, int me);
  /// Of the whole frontier, the share that this rank led in the stage.
  double share(std::size_t stage) const noexcept;
  /// The stage in which this rank led longest.
  std::size_t worst() const noexcept;

 private:
  std::array<double, frontier_stages> mine_s_{};
  double all_s_ = 0;
};

/// How a rank compares by the median of its compute-only time, as in NVIDIA's resiliency extension: 1 is
/// best.
struct StragglerScore {
  double relative = 1;    ///< the fastest rank's median over this one's
  double individual = 1;  ///< the median of this rank's fastest tenth of steps over its median
  bool straggles =
      false;  ///< relative under 0.95, and slower than the median rank by more than 5 deviations (MAD)
};
/// `medians` of all ranks' compute time in seconds, `own` all of this rank's.
StragglerScore straggler_score(std::span<const double> medians, int me, std::span<const double> own);

}  // namespace assay::train
