// SPDX-License-Identifier: Apache-2.0
// Clocks, power and temperatures of a node and its GPUs while cases run.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "telemetry/nvml_thread.hpp"
#include "telemetry/power_meter.hpp"

namespace assay {

/// What was sampled since it was last taken.
struct TelemetryChunk {
  struct Series {
    std::string entity_kind, entity_name;               ///< of /entities
    std::vector<double> t;                              ///< now_s()
    std::map<std::string, std::vector<double>> values;  ///< by quantity; NaN if unsupported
  };
  struct Flag {
    double t = 0;
    std::string entity_kind, entity_name, flag;
    bool set = false;
  };
  std::vector<Series> series;
  std::vector<Flag> flags;
  std::vector<std::pair<std::string, std::size_t>>
      dropped;  ///< of a device: how often a flag was set unrecorded
};

/// Changes of the throttle flags of one GPU. Beyond a few thousand since they were taken, those that are set
/// are dropped with what clears them.
class ThrottleFlags {
 public:
  /// `reasons`: bits of nvml::throttle. Appends what changed since the call before.
  void add(double t, unsigned long long reasons, const std::string& gpu,
           std::vector<TelemetryChunk::Flag>& out);
  /// How often a flag was set and dropped since the call before.
  std::size_t take() noexcept;

 private:
  unsigned long long before_ = 0, recorded_ = 0;
  std::size_t flags_ = 0, dropped_ = 0;
};

/// Power of one GPU from its energy counter, which moves every 20 to 100 ms.
class PowerOfMoves {
 public:
  /// Mean power from the last move of the counter to this one, in W; NaN while it stands still, and at first.
  double add(double t, double joules) noexcept;

 private:
  double t_ = unsupported, joules_ = unsupported;  ///< of the last move
};

/// Unit of a quantity of telemetry, as in the schema of results.
std::string unit_of_quantity(const std::string& quantity);

/// Samples in a thread of its own. A sensor delays no rank: what does not answer is left out.
class Telemetry {
 public:
  /// `hz` times a second; of `every` readings one is kept, and of their flags all. `nvml` is null where there
  /// are no GPUs. `root` is prefixed to /sys for tests.
  Telemetry(const std::string& node_name, std::shared_ptr<NvmlThread> nvml, double hz, std::size_t every = 1,
            const std::string& root = "");
  ~Telemetry();
  Telemetry(const Telemetry&) = delete;
  Telemetry& operator=(const Telemetry&) = delete;

  /// Never waits. Holds at most a few thousand samples: of more, every second one is dropped.
  TelemetryChunk take();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Sensors of the node itself, few, so that reading them costs little: clock of one CPU of each
/// package, hottest package, power of the packages from differences of their energy. Empty where the system
/// tells nothing.
class NodeSensors {
 public:
  explicit NodeSensors(const std::string& root = "");
  std::map<std::string, double> read(double t);

 private:
  std::vector<std::string> clocks_, temperatures_;
  PackageEnergy packages_;
  double last_t_ = unsupported, last_j_ = unsupported;
};

}  // namespace assay
