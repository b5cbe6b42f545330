// SPDX-License-Identifier: Apache-2.0
#include "device/corrupt.hpp"

#include <array>

namespace assay {

void flip_bit(Device& device, void* data, std::size_t index, std::size_t element_bytes, unsigned bit) {
  auto* byte = static_cast<std::byte*>(data) + index * element_bytes + bit / 8;
  std::byte value{};
  device.copy_to_host(&value, byte, 1);
  value ^= static_cast<std::byte>(1u << (bit % 8));
  device.copy_to_device(byte, &value, 1);
}

void store_nan(Device& device, void* data, std::size_t index, std::size_t element_bytes) {
  std::array<std::byte, 8> value;
  value.fill(std::byte{0xff});
  value[element_bytes - 1] = std::byte{0x7f};  // little endian, as all devices are
  device.copy_to_device(static_cast<std::byte*>(data) + index * element_bytes, value.data(), element_bytes);
}

}  // namespace assay
