// SPDX-License-Identifier: Apache-2.0
#include "workload/compare_bits.hpp"

#include <algorithm>
#include <cstring>

namespace assay::workload {
namespace {

constexpr std::size_t chunk_bytes = 256 * 1024;

std::uint64_t bits_of(const std::byte* data, std::size_t element_bytes) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, data, element_bytes);
  return bits;
}

/// Compares one chunk; `device_data` is where the actual elements lie, for reading them again.
void compare_chunk(Device& device, const std::byte* device_data, const std::byte* actual,
                   const std::byte* expected, std::size_t count, std::size_t element_bytes,
                   std::size_t first_index, WrongElements& wrong) {
  if (std::memcmp(actual, expected, count * element_bytes) == 0) return;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = i * element_bytes;
    if (std::memcmp(actual + at, expected + at, element_bytes) == 0) continue;
    if (wrong.first.size() < WrongElements::capacity) {
      std::byte again[8] = {};
      device.copy_to_host(again, device_data + at, element_bytes);
      wrong.first.push_back({first_index + i, bits_of(expected + at, element_bytes),
                             bits_of(actual + at, element_bytes), bits_of(again, element_bytes)});
    }
    ++wrong.count;
  }
}

}  // namespace

WrongElements compare_bits(Device& device, const void* actual, const void* expected, std::size_t count,
                           std::size_t element_bytes) {
  WrongElements wrong;
  const std::size_t step = chunk_bytes / element_bytes;
  std::vector<std::byte> got(step * element_bytes);
  const auto* a = static_cast<const std::byte*>(actual);
  const auto* e = static_cast<const std::byte*>(expected);
  for (std::size_t i = 0; i < count; i += step) {
    const std::size_t n = std::min(step, count - i);
    device.copy_to_host(got.data(), a + i * element_bytes, n * element_bytes);
    compare_chunk(device, a + i * element_bytes, got.data(), e + i * element_bytes, n, element_bytes, i,
                  wrong);
  }
  return wrong;
}

WrongElements compare_bits_on_device(Device& device, const void* actual, const void* expected,
                                     std::size_t count, std::size_t element_bytes) {
  WrongElements wrong;
  const std::size_t step = chunk_bytes / element_bytes;
  std::vector<std::byte> got(step * element_bytes), want(step * element_bytes);
  const auto* a = static_cast<const std::byte*>(actual);
  const auto* e = static_cast<const std::byte*>(expected);
  for (std::size_t i = 0; i < count; i += step) {
    const std::size_t n = std::min(step, count - i);
    device.copy_to_host(got.data(), a + i * element_bytes, n * element_bytes);
    device.copy_to_host(want.data(), e + i * element_bytes, n * element_bytes);
    compare_chunk(device, a + i * element_bytes, got.data(), want.data(), n, element_bytes, i, wrong);
  }
  return wrong;
}

}  // namespace assay::workload
