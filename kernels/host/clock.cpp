// SPDX-License-Identifier: Apache-2.0
#include "kernels/clock.hpp"

namespace assay::kernels {

double clock_rate(const ClockPair* before, const ClockPair* after, std::size_t count) noexcept {
  double sum = 0;
  std::size_t read = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (before[i].nanoseconds == 0 || after[i].nanoseconds <= before[i].nanoseconds ||
        after[i].cycles <= before[i].cycles)
      continue;
    sum += 1e9 * static_cast<double>(after[i].cycles - before[i].cycles) /
           static_cast<double>(after[i].nanoseconds - before[i].nanoseconds);
    ++read;
  }
  return read == 0 ? 0 : sum / static_cast<double>(read);
}

}  // namespace assay::kernels
