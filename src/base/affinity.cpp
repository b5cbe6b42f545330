// SPDX-License-Identifier: Apache-2.0
#include "base/affinity.hpp"

#include <pthread.h>

#include <cstring>

namespace assay {

AnyCpu::AnyCpu() noexcept : known_(pthread_getaffinity_np(pthread_self(), sizeof before_, &before_) == 0) {
  if (!known_) return;
  cpu_set_t all;
  std::memset(&all, 0xff, sizeof all);  // the kernel leaves out those that are absent or not allowed
  pthread_setaffinity_np(pthread_self(), sizeof all, &all);
}

AnyCpu::~AnyCpu() {
  if (known_) pthread_setaffinity_np(pthread_self(), sizeof before_, &before_);
}

}  // namespace assay
