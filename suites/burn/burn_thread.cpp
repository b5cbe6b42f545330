// SPDX-License-Identifier: Apache-2.0
#include "suites/burn/burn_thread.hpp"

#include <algorithm>
#include <chrono>

#include "base/clock.hpp"

namespace assay::burn {

void BurnThread::body(const std::function<std::unique_ptr<Burner>()>& make) {
  try {
    const auto burner = make();
    burner->prepare();
    trial = burner->trial();
    set_ready();
    started_.wait(false);
    while (!stopped_ && now_s() < span_.begin_s)
      std::this_thread::sleep_for(
          std::chrono::duration<double>(std::clamp(span_.begin_s - now_s(), 0.0, 0.05)));
    while (!stopped_ && now_s() < span_.end_s) {
      const double begin = now_s();
      const double amount = burner->round();
      work.push_back({begin, now_s(), amount});
    }
    burner->finish();
    if (auto* compute = dynamic_cast<ComputeBurner*>(burner.get())) {
      digest = compute->digest();
      size = compute->size();
    }
    if (const auto* memory = dynamic_cast<MemoryBurner*>(burner.get())) size = memory->bytes();
  } catch (...) {
    failure = std::current_exception();
    failed_ = true;
  }
  set_ready();
}

}  // namespace assay::burn
