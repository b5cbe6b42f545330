// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/device.hpp"

namespace assay::workload {

/// One element that is not what it must be; values are raw bits, zero-extended.
struct WrongElement {
  std::uint64_t index = 0, expected = 0, actual = 0, reread = 0;
};

/// Exact 64-bit count of wrong elements and the first `capacity` of them.
struct WrongElements {
  std::uint64_t count = 0;
  std::vector<WrongElement> first;
  static constexpr std::size_t capacity = 1000;
};

/// Compares `count` elements of `element_bytes` (1 to 8) in device memory with host memory, bit by bit: a NaN
/// equals only itself, and -0 is not 0. Wrong elements are read a second time.
WrongElements compare_bits(Device& device, const void* actual, const void* expected, std::size_t count,
                           std::size_t element_bytes);

/// The same with the expected values in device memory.
WrongElements compare_bits_on_device(Device& device, const void* actual, const void* expected,
                                     std::size_t count, std::size_t element_bytes);

}  // namespace assay::workload
