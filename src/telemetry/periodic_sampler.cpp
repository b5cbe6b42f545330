// SPDX-License-Identifier: Apache-2.0
#include "telemetry/periodic_sampler.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.hpp"

namespace assay {

PeriodicSampler::PeriodicSampler(std::function<double()> sample)
    : sample_(std::move(sample)), thread_([this] { run(); }) {}

PeriodicSampler::~PeriodicSampler() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void PeriodicSampler::run() {
  double next = now_s();
  std::unique_lock lock(mutex_);
  while (!stop_) {
    lock.unlock();
    const double period_s = sample_();
    lock.lock();
    next = std::max(next + period_s, now_s());
    changed_.wait_for(lock, std::chrono::duration<double>(next - now_s()), [&] { return stop_; });
  }
}

}  // namespace assay
