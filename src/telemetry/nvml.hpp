// SPDX-License-Identifier: Apache-2.0
// NVIDIA GPUs through the management library of the driver, which is looked for when the program runs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "telemetry/nvml_abi.hpp"
#include "topology/topology.hpp"

namespace assay {

/// An answer is a value, or there is none to be had here (this GPU, this driver, this user), or asking
/// failed.
enum class Told { value, absent, failed };

struct Reading {
  Told told = Told::absent;
  double value = unsupported;  ///< NaN unless the state is `value`
};

/// An Xid: an error of a GPU reported by the driver.
struct Xid {
  int gpu = -1;
  int number = 0;
};

/// One use of the library. A call may take any time in the driver: see NvmlThread. Not for several
/// threads at once.
class Nvml {
 public:
  struct Opened {
    std::unique_ptr<Nvml> nvml;  ///< null where there is no library or it found no driver
    std::string trouble;         ///< why a library that is there cannot be used; empty where there is none
  };
  /// Loads libnvidia-ml.so.1, or the file that the environment variable ASSAY_NVML_LIBRARY names.
  static Opened open();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  std::string driver() const;   ///< version of the driver, e.g. "580.65.06"
  std::string version() const;  ///< of the library
  int count() const noexcept { return static_cast<int>(devices_.size()); }
  /// By which the driver knows one of these. It counts those below, too.
  int driver_number(int gpu) const { return numbers_[static_cast<std::size_t>(gpu)]; }
  /// GPUs that the driver counts and gives no access to, e.g. since they fell off the bus: one line each.
  const std::vector<std::string>& lost() const noexcept { return lost_; }
  /// Numbers of those that this process may not use.
  const std::vector<int>& hidden() const noexcept { return hidden_; }

  Gpu describe(int gpu) const;
  std::string uuid(int gpu) const;
  std::string serial(int gpu) const;  ///< empty where it has none

  Reading clock_hz(int gpu, int clock) const;
  Reading energy_j(int gpu) const;  ///< since the driver was loaded
  Reading temperature_k(int gpu) const;
  Reading utilisation(int gpu, bool memory) const;  ///< fraction of the last sampling period of the driver
  Reading throttle_reasons(int gpu) const;          ///< bits of nvml::throttle
  Reading pcie_generation(int gpu) const;
  Reading pcie_width(int gpu) const;
  Reading pcie_replays(int gpu) const;
  Reading ecc_errors(int gpu, int type, bool sram) const;  ///< since the driver was loaded
  struct Remapped {
    Reading correctable, uncorrectable, pending, failure;
  };
  Remapped remapped_rows(int gpu) const;
  struct FieldOf {
    unsigned id = 0, scope = 0;
  };
  /// In one call, for many are asked around every case.
  std::vector<Reading> fields(int gpu, const std::vector<FieldOf>& wanted) const;
  Reading field(int gpu, unsigned id) const { return fields(gpu, {{id, 0}}).front(); }
  struct LinkErrors {
    Reading replay, recovery, crc;
  };
  /// Sums over the links that were up at the start, from the counters that this generation of GPUs really
  /// keeps. Of Blackwell: packets received with errors, recoveries, and lost link integrity.
  LinkErrors link_errors(int gpu) const;
  /// Links that are up, and those there are; NaN where there are none.
  std::pair<double, double> links(int gpu) const;

  /// Starts to listen for Xids; false if no GPU reports them.
  bool listen();
  bool listens_to(int gpu) const;
  /// Those since the last call, without waiting.
  std::vector<Xid> take_xids();

 private:
  Nvml(void* library, const nvml::Functions& functions);
  nvml::Device device(int gpu) const { return devices_[static_cast<std::size_t>(gpu)]; }
  void describe_identity(int gpu, Gpu& out) const;
  void describe_limits(int gpu, Gpu& out) const;
  void describe_modes(int gpu, Gpu& out) const;
  void describe_links(int gpu, Gpu& out) const;
  void describe_states(int gpu, Gpu& out) const;
  Reading one_link(int gpu, unsigned link, int which) const;
  int major_capability(nvml::Device device) const;
  std::vector<unsigned> links_up(nvml::Device device) const;

  void* library_;
  nvml::Functions f_;
  std::vector<nvml::Device> devices_;
  std::vector<int> numbers_, hidden_;
  std::vector<int> major_;                     ///< compute capability, 0 unknown
  std::vector<std::vector<unsigned>> active_;  ///< links that were up
  std::vector<std::string> lost_;
  nvml::EventSet events_ = nullptr;
  std::vector<bool> listening_;
};

/// Asks for all GPUs of the node, and for the versions of driver and library.
void describe_gpus(const Nvml& nvml, Node& node);

}  // namespace assay
