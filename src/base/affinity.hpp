// SPDX-License-Identifier: Apache-2.0
// The CPUs that a thread may run on, for a while.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <cstddef>
#include <vector>

namespace assay {

/// A set of CPUs for calls that take cpu_set_t, which itself ends at CPU 1023.
class CpuMask {
 public:
  explicit CpuMask(const std::vector<int>& cpus);
  const cpu_set_t* get() const noexcept { return reinterpret_cast<const cpu_set_t*>(words_.data()); }
  cpu_set_t* get() noexcept { return reinterpret_cast<cpu_set_t*>(words_.data()); }
  std::size_t bytes() const noexcept { return words_.size() * sizeof words_[0]; }

 private:
  std::vector<unsigned long> words_;
};

/// Lets a thread run on these CPUs only. False where the kernel refuses it: none of them exists or is
/// allowed.
bool bind_thread(pthread_t thread, const std::vector<int>& cpus);

/// Lets the calling thread run on all CPUs that its cgroup allows; its mask is restored by the same thread
/// at the end. Without effect where the kernel refuses it.
class AnyCpu {
 public:
  AnyCpu();
  ~AnyCpu();
  AnyCpu(const AnyCpu&) = delete;
  AnyCpu& operator=(const AnyCpu&) = delete;

 private:
  std::vector<int> before_;  ///< empty where it is not known
};

}  // namespace assay
