// SPDX-License-Identifier: Apache-2.0
// The energy that the GPUs and the processors of a node have used, from their own counters.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "telemetry/nvml_thread.hpp"

namespace assay {

/// Joules up to time `t` (now_s()) since an arbitrary start; NaN without a counter.
struct EnergyReading {
  double t = 0;
  std::vector<double> gpus_j;  ///< numbered as in Node::gpus
  double packages_j = unsupported;
};

/// Energy of all processor packages of a node from what powercap counts (Intel RAPL and its like). The
/// counters start from 0 again after a few minutes at full power, so it must be read more often than that.
class PackageEnergy {
 public:
  /// `root` is prefixed to /sys for tests.
  explicit PackageEnergy(const std::string& root = "");
  bool tells() const noexcept { return !zones_.empty(); }
  /// Joules since the first call; NaN without counters, or if one is missing now.
  double read();

 private:
  struct Zone {
    std::string file;
    double range_j = 0;  ///< where it starts from 0 again
    double last_j = unsupported;
  };
  std::vector<Zone> zones_;
  double used_j_ = 0;
};

/// Reads in a thread of its own for as long as it lives, every few milliseconds or as fast as the driver
/// answers. A sensor that hangs delays no rank.
class PowerMeter {
 public:
  /// `nvml` is null where there are no GPUs.
  PowerMeter(std::shared_ptr<NvmlThread> nvml, double period_s, const std::string& root = "");
  ~PowerMeter();
  PowerMeter(const PowerMeter&) = delete;
  PowerMeter& operator=(const PowerMeter&) = delete;

  /// All readings so far; the oldest are thinned out where there are too many. Ends the thread.
  std::vector<EnergyReading> finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace assay
