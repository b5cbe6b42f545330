// SPDX-License-Identifier: Apache-2.0
#include "suites/train/preset.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace assay::train {
namespace {

// make_bands.py --preset tiny --steps 200 --every 20 --batches 8:40,32:8
constexpr BandPoint tiny_band[] = {
    {20, 1.38, 2.21},    // seen 1.711 to 2.044
    {40, -0.02, 2.45},   // seen 0.848 to 1.913
    {60, -0.02, 2.53},   // seen 0.218 to 1.757
    {80, -0.02, 2.21},   // seen 0.122 to 1.516
    {100, -0.02, 1.81},  // seen 0.086 to 1.233
    {120, -0.02, 1.48},  // seen 0.071 to 1.009
    {140, -0.02, 1.08},  // seen 0.057 to 0.738
    {160, -0.02, 0.78},  // seen 0.052 to 0.538
    {180, -0.02, 0.55},  // seen 0.052 to 0.387
    {200, -0.02, 0.48},  // seen 0.047 to 0.336
};
// make_bands.py --preset small --steps 80 --every 20 --batches 4:20,16:1
constexpr BandPoint small_band[] = {
    {20, 2.27, 2.81},   // seen 2.486 to 2.701
    {40, 1.23, 2.96},   // seen 1.922 to 2.612
    {60, -0.02, 3.21},  // seen 0.627 to 2.346
    {80, -0.02, 2.37},  // seen 0.370 to 1.700
};

const Preset host_presets[] = {
    {"tiny", {128, 2, 4, 32, 64}, {32, 1, 8}, 8, 3e-3f, 10, tiny_band, 32},
    {"small", {384, 6, 6, 64, 128}, {64, 1, 8}, 4, 1e-3f, 10, small_band, 16},
};
// Layers as wide as those of models that GPUs are bought for, with a vocabulary of their size; the tokens
// come from fewer, so that a run of minutes learns them. No band: these were not trained often enough to
// know it.
const Preset gpu_presets[] = {
    {"tiny", {128, 2, 4, 32, 64}, {32, 1, 8}, 8, 3e-3f, 10, tiny_band, 32},
    {"small", {768, 12, 12, 25600, 1024}, {1024, 1, 8}, 16, 6e-4f, 20, {}},
    {"slice-7b", {4096, 32, 32, 32768, 2048}, {1024, 1, 8}, 4, 3e-4f, 20, {}, 0, 1},
};

}  // namespace

kernels::AdamW Preset::rule(int step, int ranks) const noexcept {
  kernels::AdamW adamw;
  adamw.rate = rate * std::min(1.0f, static_cast<float>(step + 1) / static_cast<float>(warmup));
  adamw.gradient_scale = 1.0f / static_cast<float>(ranks);
  return adamw.at(step + 1);
}

const BandPoint* Preset::point_at(int step) const noexcept {
  const auto found =
      std::find_if(band.begin(), band.end(), [step](const BandPoint& p) { return p.step == step; });
  return found == band.end() ? nullptr : &*found;
}

int Preset::judged_from(double untrained_regret) const noexcept {
  const auto found =
      std::find_if(band.begin(), band.end(), [&](const BandPoint& p) { return p.upper < untrained_regret; });
  return found == band.end() ? 0 : found->step;
}

const Preset& preset_named(const std::string& name, bool on_gpus) {
  const std::span<const Preset> known =
      on_gpus ? std::span<const Preset>(gpu_presets) : std::span<const Preset>(host_presets);
  for (const Preset& preset : known)
    if (preset.name == name) return preset;
  throw_usage("--train.preset: no preset '" + name + "' for " + (on_gpus ? "GPUs" : "the host device"));
}

}  // namespace assay::train
