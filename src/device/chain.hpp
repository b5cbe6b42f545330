// SPDX-License-Identifier: Apache-2.0
// Private to src/device: the cycle of dependent loads that a device built last, and walks along it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "device/device.hpp"
#include "kernels/chase.hpp"

namespace assay {

class Chain {
 public:
  /// What a device does with a chain in its memory.
  struct Kernels {
    std::function<void(void* memory, std::size_t bytes, std::uint64_t key)> build;
    /// Where the walk ended, and the nanoseconds it took.
    std::function<std::pair<kernels::ChaseEnd, double>(
        const void* memory, std::size_t bytes, std::uint64_t key, std::size_t start, std::size_t steps)>
        walk;
  };

  /// Builds the cycle unless it is the one of the last call, and again, once, where a link is broken: the
  /// memory was used for something else since, or has a fault. Throws Error(device) where not one link holds.
  ChaseTime time(Device& device, const Kernels& kernels, void* memory, std::size_t bytes, std::size_t steps,
                 std::uint64_t key);

  void forget() noexcept { memory_ = nullptr; }

 private:
  const void* memory_ = nullptr;
  std::size_t bytes_ = 0, at_ = 0;  ///< the node where the next walk starts
  std::uint64_t key_ = 0;
};

}  // namespace assay
