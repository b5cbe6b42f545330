// SPDX-License-Identifier: Apache-2.0
// What is trained, and what its regret must be.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "kernels/adamw.hpp"
#include "suites/train/model.hpp"
#include "suites/train/source.hpp"

namespace assay::train {

/// Regret (mean over the steps (step - window, step]) of a healthy run, whatever the seed and the number of
/// ranks.
struct BandPoint {
  int step;
  double lower, upper;
};
inline constexpr int band_window = 10;
/// No healthy run has less, however fast it learns: the entropy of the source, less the noise of a regret
/// near zero.
inline constexpr double least_regret = -0.02;

struct Preset {
  std::string_view name;
  ModelShape model;
  SourceShape source;
  std::size_t batch;                ///< sequences per rank and step
  float rate;                       ///< of AdamW, after a linear warm-up
  int warmup;                       ///< steps
  std::span<const BandPoint> band;  ///< by ascending step; of training in fp32
  std::size_t band_sequences = 0;   ///< of a step of all ranks: the most that the band was made with
  std::size_t least_layers =
      0;  ///< fewer layers than the model's where memory is short, down to these; 0: never

  std::size_t tokens() const noexcept { return batch * model.length; }
  /// The update rule of a 0-based step for a gradient summed over `ranks`.
  kernels::AdamW rule(int step, int ranks) const noexcept;
  /// The point of the band at `step` (steps done); null where there is none.
  const BandPoint* point_at(int step) const noexcept;
  /// The lower edge of a point where a step has so many sequences. More than the band was made with learn
  /// faster than its runs, and are bounded by the entropy alone.
  double lower_edge(const BandPoint& point, std::size_t sequences) const noexcept {
    return sequences > band_sequences ? least_regret : point.lower;
  }
  /// The first step at which the band rejects a model that keeps the regret of an untrained one; 0 if none.
  int judged_from(double untrained_regret) const noexcept;
};

/// What a name means on GPUs and on the host; throws Error(usage) where it means nothing.
const Preset& preset_named(const std::string& name, bool on_gpus = false);

}  // namespace assay::train
