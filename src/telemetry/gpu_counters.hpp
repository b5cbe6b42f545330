// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "telemetry/nvml_thread.hpp"

namespace assay {

/// What the driver counts of each GPU: errors, time below the clocks it could have, energy. Xids are counted
/// from when this was made.
class GpuCounters {
 public:
  struct Counter {
    int gpu = -1;
    std::string name;   ///< nvml_..., or xid_79
    bool error = true;  ///< an increase tells of a fault, or may do so
  };
  /// Finds out what can be read of the GPUs, which are numbered as in Node::gpus.
  explicit GpuCounters(std::shared_ptr<NvmlThread> thread);

  /// GPUs that NVML shows; 0 where it does not answer.
  int count() const noexcept { return gpus_; }
  /// By which the driver knows one of them (Gpu::number); of a driver that does not answer its place.
  int number(int gpu) const noexcept { return gpu < gpus_ ? numbers_[static_cast<std::size_t>(gpu)] : gpu; }
  /// Those that can be read; a read may add some at the end: an Xid never seen before, which was 0 until
  /// then.
  const std::vector<Counter>& counters() const noexcept { return counters_; }
  const std::vector<Counter>& absent() const noexcept { return absent_; }
  /// In the order of counters(); NaN for what cannot be read now. Never waits long.
  std::vector<double> read();

 private:
  struct Sheet;
  static void fill(Nvml& nvml, Sheet& sheet);
  std::shared_ptr<Sheet> ask();
  void take_xids(const Sheet& sheet);

  std::shared_ptr<NvmlThread> thread_;
  int gpus_ = 0;
  std::vector<int> numbers_;
  std::vector<Counter> counters_, absent_;
  std::vector<std::pair<int, std::size_t>> place_;  ///< GPU and line of the sheet that each counter stands in
  std::vector<std::size_t> xid_at_;             ///< by GPU, where `nvml_xid` stands; npos: it tells of none
  std::map<std::pair<int, int>, double> xids_;  ///< by GPU and number
  std::map<std::pair<int, int>, std::size_t> xid_counter_;
};

/// Of all counters but the Xids.
std::vector<std::string> gpu_counter_names();

/// What an Xid means, in a few words; empty for those without a name here.
std::string words_of_xid(int number);

}  // namespace assay
