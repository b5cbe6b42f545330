// SPDX-License-Identifier: Apache-2.0
// A thread that reads sensors at regular times.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace assay {

/// Calls `sample` at once and again after the seconds that it returns, counted from the time at which it was
/// due. A call that took longer is followed by the next one at once; calls that were missed are left out.
class PeriodicSampler {
 public:
  explicit PeriodicSampler(std::function<double()> sample);
  /// Waits for a call in progress.
  ~PeriodicSampler();
  PeriodicSampler(const PeriodicSampler&) = delete;
  PeriodicSampler& operator=(const PeriodicSampler&) = delete;

 private:
  void run();

  std::function<double()> sample_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace assay
