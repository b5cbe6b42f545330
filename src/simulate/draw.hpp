// SPDX-License-Identifier: Apache-2.0
// Random variates as functions of (stream, index), so that what one entity draws does not depend on who else
// is measured.
#pragma once

#include <cstdint>

#include "base/random.hpp"

namespace assay::simulate {

/// Independent draws by index. Every index owns `slots` counters of the stream.
class Draw {
 public:
  explicit Draw(const RandomStream& stream) noexcept : stream_(stream) {}

  double uniform(std::uint64_t index, unsigned slot = 0) const noexcept;      ///< in [0, 1)
  double normal(std::uint64_t index, unsigned slot = 0) const noexcept;       ///< takes 2 slots
  double exponential(std::uint64_t index, unsigned slot = 0) const noexcept;  ///< mean 1; takes 1 slot
  /// Student's t with `nu` (3 or 4) degrees of freedom, scaled so that its median absolute deviation is that
  /// of the standard normal: a heavy tail around an ordinary core. Takes 5 slots.
  double heavy(std::uint64_t index, int nu, unsigned slot = 0) const noexcept;

 private:
  static constexpr std::uint64_t slots = 8;
  std::uint64_t counter(std::uint64_t index, unsigned slot) const noexcept { return index * slots + slot; }
  RandomStream stream_;
};

}  // namespace assay::simulate
