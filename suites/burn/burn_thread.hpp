// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "suites/burn/burner.hpp"
#include "suites/burn/schedule.hpp"

namespace assay::burn {

/// A part in a thread of its own: made ready at once, burns when told to.
class BurnThread {
 public:
  /// `make` is called by the thread itself, which then owns all that it uses of the device.
  BurnThread(Component part, std::function<std::unique_ptr<Burner>()> make)
      : part_(part), thread_([this, make = std::move(make)] { body(make); }) {}
  ~BurnThread() {
    stop();
    if (thread_.joinable()) thread_.join();
  }
  BurnThread(const BurnThread&) = delete;
  BurnThread& operator=(const BurnThread&) = delete;

  Component part() const noexcept { return part_; }
  void wait_ready() { ready_.wait(false); }
  bool failed() const noexcept { return failed_.load(); }
  /// When it is to burn, by now_s().
  void start(const Span& span) {
    span_ = span;
    started_ = true;
    started_.notify_all();
  }
  void stop() {
    stopped_ = true;
    started_ = true;
    started_.notify_all();
  }
  void join() { thread_.join(); }

  // After wait_ready(), or after join().
  Trial trial;
  std::vector<Work> work;
  std::uint64_t digest = 0, size = 0;  ///< of products; of memory its bytes
  std::exception_ptr failure;

 private:
  void body(const std::function<std::unique_ptr<Burner>()>& make);
  void set_ready() {
    ready_ = true;
    ready_.notify_all();
  }

  Component part_;
  Span span_;
  std::atomic<bool> ready_{false}, started_{false}, stopped_{false}, failed_{false};
  std::thread thread_;
};

}  // namespace assay::burn
