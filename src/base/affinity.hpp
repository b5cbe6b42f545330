// SPDX-License-Identifier: Apache-2.0
// The CPUs that a thread may run on, for a while.
#pragma once

#include <sched.h>

namespace assay {

/// Lets the calling thread run on all CPUs that its cgroup allows; its mask is restored by the same thread
/// at the end. Without effect where the kernel refuses it.
class AnyCpu {
 public:
  AnyCpu() noexcept;
  ~AnyCpu();
  AnyCpu(const AnyCpu&) = delete;
  AnyCpu& operator=(const AnyCpu&) = delete;

 private:
  cpu_set_t before_{};
  bool known_ = false;
};

}  // namespace assay
