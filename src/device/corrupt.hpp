// SPDX-License-Identifier: Apache-2.0
// Wrong values made on purpose in device memory: by the detection self-test of every run, and by --inject.
#pragma once

#include <cstddef>

#include "device/device.hpp"

namespace assay {

/// Flips bit `bit` of element `index`.
void flip_bit(Device& device, void* data, std::size_t index, std::size_t element_bytes, unsigned bit);

/// Makes element `index` (1 to 8 bytes) a NaN: every bit is set but the sign, which is one in all
/// floating-point formats.
void store_nan(Device& device, void* data, std::size_t index, std::size_t element_bytes);

}  // namespace assay
