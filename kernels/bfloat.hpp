// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace assay::kernels {

/// A bf16 number as it lies in memory: the upper half of a float. Work is done in fp32.
struct Bfloat {
  std::uint16_t bits = 0;
};

/// Rounded to nearest, ties to even; a NaN stays one.
constexpr Bfloat to_bfloat(float x) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {0x7fff};
  return {static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}
constexpr float to_float(Bfloat x) noexcept { return std::bit_cast<float>(std::uint32_t{x.bits} << 16); }

}  // namespace assay::kernels
