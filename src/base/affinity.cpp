// SPDX-License-Identifier: Apache-2.0
#include "base/affinity.hpp"

#include <algorithm>
#include <numeric>

#include "base/system.hpp"

namespace assay {

CpuMask::CpuMask(const std::vector<int>& cpus) {
  const int last = std::accumulate(cpus.begin(), cpus.end(), 0, [](int a, int b) { return std::max(a, b); });
  words_.assign(CPU_ALLOC_SIZE(static_cast<std::size_t>(last) + 1) / sizeof words_[0], 0);
  for (const int cpu : cpus)
    if (cpu >= 0) CPU_SET_S(static_cast<std::size_t>(cpu), bytes(), get());
}

bool bind_thread(pthread_t thread, const std::vector<int>& cpus) {
  const CpuMask mask(cpus);
  return pthread_setaffinity_np(thread, mask.bytes(), mask.get()) == 0;
}

AnyCpu::AnyCpu() : before_(allowed_cpus()) {
  if (before_.empty()) return;
  constexpr int most = 8192;  // CPUs of a kernel, which leaves out those that are absent or not allowed
  std::vector<int> all(most);
  std::iota(all.begin(), all.end(), 0);
  bind_thread(pthread_self(), all);
}

AnyCpu::~AnyCpu() {
  if (!before_.empty()) bind_thread(pthread_self(), before_);
}

}  // namespace assay
