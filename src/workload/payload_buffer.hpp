// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "device/device.hpp"

namespace assay::workload {

/// Where messages lie, and who writes and looks at them there.
class PayloadBuffer {
 public:
  PayloadBuffer(std::span<std::byte> host) : memory_(host) {}
  PayloadBuffer(std::vector<std::byte>& host) : memory_(host) {}
  /// The arena of a device.
  PayloadBuffer(Device& device)
      : memory_(device.arena()), device_(!device.has_own_memory() ? nullptr : &device) {}

  std::byte* data() const noexcept { return memory_.data(); }
  std::size_t size() const noexcept { return memory_.size(); }
  /// Memory of a device that may fail while the host goes on.
  bool on_device() const noexcept { return device_ != nullptr; }

  void fill(kernels::PayloadKey key, std::byte* at, std::size_t bytes) const {
    if (device_ == nullptr)
      kernels::host::payload_fill(key, at, bytes);
    else
      device_->payload_fill(key, at, bytes);
  }
  /// All that was filled is there.
  void settle() const {
    if (device_ != nullptr) device_->synchronize();
  }
  kernels::PayloadErrors check(kernels::PayloadKey key, const std::byte* at, std::size_t bytes) const {
    return device_ == nullptr ? kernels::host::payload_check(key, at, bytes)
                              : device_->payload_check(key, at, bytes);
  }
  /// Up to 8 bytes again, read from memory and not from a register.
  std::uint64_t read_again(const std::byte* at, std::size_t bytes) const {
    std::uint64_t word = 0;
    const std::size_t n = bytes < 8 ? bytes : 8;
    if (device_ != nullptr) {
      device_->copy_to_host(&word, at, n);
      return word;
    }
    const volatile std::byte* from = at;
    for (std::size_t i = 0; i < n; ++i) word |= static_cast<std::uint64_t>(from[i]) << (8 * i);
    return word;
  }

 private:
  std::span<std::byte> memory_;
  Device* device_ = nullptr;  ///< null: host memory
};

}  // namespace assay::workload
