// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "measure/power.hpp"
#include "suite/suite.hpp"
#include "telemetry/power_meter.hpp"

namespace assay {

/// Measures the energy of a node's devices during a case. The first rank of a node reads for all.
class DevicePower {
 public:
  /// Reads every `period_s` during the lifetime of this object.
  DevicePower(const Context& context, double period_s);

  /// The readings of this rank's energy counter: its GPU, or all processor packages of its node; none without
  /// a counter. The times are now_s(). Collective over the node; once.
  EnergyTrace finish();

 private:
  const Context& context_;
  std::unique_ptr<PowerMeter> meter_;
};

}  // namespace assay
