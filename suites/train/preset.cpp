// SPDX-License-Identifier: Apache-2.0
#include "suites/train/preset.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace assay::train {
namespace {

constexpr BandPoint tiny_band[] = {{100, 0, 1.6}};
constexpr BandPoint small_band[] = {{80, 0, 2.0}};

const Preset presets[] = {
    {"tiny", {128, 2, 4, 32, 64}, {32, 1, 8}, 8, 3e-3f, 10, tiny_band},
    {"small", {384, 6, 6, 64, 128}, {64, 1, 8}, 4, 1e-3f, 10, small_band},
};

}  // namespace

kernels::AdamW Preset::rule(int step, int ranks) const noexcept {
  kernels::AdamW adamw;
  adamw.rate = rate * std::min(1.0f, static_cast<float>(step + 1) / static_cast<float>(warmup));
  adamw.gradient_scale = 1.0f / static_cast<float>(ranks);
  return adamw.at(step + 1);
}

const BandPoint* Preset::point_at(int step) const noexcept {
  const auto found = std::find_if(band.begin(), band.end(), [step](const BandPoint& p) { return p.step == step; });
  return found == band.end() ? nullptr : &*found;
}

const Preset& preset_named(const std::string& name) {
  for (const Preset& preset : presets)
    if (preset.name == name) return preset;
  throw_usage("--train.preset: no preset '" + name + "'");
}

}  // namespace assay::train
