// SPDX-License-Identifier: Apache-2.0
// A run judged against a baseline of one other.
#pragma once

#include <memory>
#include <utility>

#include "tests/unit/fabricate.hpp"
#include "verdict/baseline.hpp"
#include "verdict/references.hpp"

namespace assay::baseline_rig {

inline std::shared_ptr<const verdict::Baseline> baseline(const results::Results& r) {
  return std::make_shared<verdict::Baseline>(
      verdict::baseline_of({verdict::snapshot_of(r, "fleet.h5")}, "fleet.h5"));
}

inline results::VerdictData judged(const results::Results& r, std::shared_ptr<const verdict::Baseline> b) {
  auto options = verdict::options_from(r);
  options.baseline = std::move(b);
  options.baseline_name = "fleet.h5";
  return verdict::judge(r, options);
}

}  // namespace assay::baseline_rig
