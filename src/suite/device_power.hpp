// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "measure/power.hpp"
#include "suite/suite.hpp"
#include "telemetry/power_meter.hpp"

namespace assay {

/// Watches what the devices of a node use while a case runs. The first rank of a node asks for all.
class DevicePower {
 public:
  /// Asks every `period_s`, as long as this lives.
  DevicePower(const Context& context, double period_s);

  /// The moves of the energy counter of what this rank measures: its GPU, or all processor packages of its
  /// node; none where nobody tells. The times are now_s(). Collective over the node; once.
  EnergyTrace finish();

 private:
  const Context& context_;
  std::unique_ptr<PowerMeter> meter_;
};

}  // namespace assay
