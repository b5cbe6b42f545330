// SPDX-License-Identifier: Apache-2.0
// A fixed team of threads for fork and join. The caller is worker 0.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

namespace assay {

/// Workers wait for work by spinning for some microseconds, then sleep in the kernel: a phase of small
/// kernels is not slowed by wake-ups, and an idle team costs nothing. Not for use by two threads at once.
class Team {
 public:
  /// One worker per entry of `cpus`, each bound to its CPU when `pin`; the calling thread becomes worker 0
  /// and gets its old binding back when the team ends. Throws Error(resource) when a thread cannot be started
  /// or bound.
  Team(const std::vector<int>& cpus, bool pin);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const noexcept { return static_cast<int>(workers_.size()) + 1; }

  /// Calls task(thread) once on every worker and returns when all are done. Tasks must not throw.
  template <typename Task>
  void run(const Task& task) noexcept {
    call(&task, [](const void* t, int thread) noexcept { (*static_cast<const Task*>(t))(thread); });
  }

 private:
  using Entry = void (*)(const void*, int) noexcept;
  void call(const void* task, Entry entry) noexcept;
  void work(int thread) noexcept;
  void stop() noexcept;
  void wait_while(std::atomic<int>& value, int old) const noexcept;

  std::vector<std::thread> workers_;
  std::vector<int> old_cpus_;  ///< of the calling thread; empty where they are not given back
  bool spin_ = true;           ///< false where threads share CPUs
  const void* task_ = nullptr;
  Entry entry_ = nullptr;
  bool stopping_ = false;
  std::atomic<int> generation_{0};
  std::atomic<int> pending_{0};
};

}  // namespace assay
