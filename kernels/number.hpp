// SPDX-License-Identifier: Apache-2.0
// Narrow floating-point formats as bits, for host code and for what checks GPUs: binary16, bfloat16 and fp8
// e4m3 (OCP OFP8: bias 7, no infinity, NaN is 0x7f) and e5m2 (bias 15, infinities as IEEE 754).
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/bfloat.hpp"

namespace assay::kernels {

/// A format of 1 sign, E exponent and M mantissa bits. With infinities as IEEE 754 has them, or without.
template <int E, int M, bool Infinity>
struct Format {
  static constexpr int bias = (1 << (E - 1)) - 1;
  static constexpr std::uint32_t exponent_mask = (1u << E) - 1, mantissa_mask = (1u << M) - 1;
  static constexpr std::uint32_t sign_bit = 1u << (E + M),
                                 nan = Infinity ? (exponent_mask << M) | (1u << (M - 1)) : sign_bit - 1;
  static constexpr std::uint32_t largest = Infinity ? (exponent_mask << M) - 1 : sign_bit - 2;

  static constexpr float decode(std::uint32_t bits) noexcept {
    const std::uint32_t sign = (bits & sign_bit) != 0 ? 0x80000000u : 0;
    const std::uint32_t exponent = bits >> M & exponent_mask, mantissa = bits & mantissa_mask;
    const bool special = Infinity ? exponent == exponent_mask : (bits & (sign_bit - 1)) == nan;
    if (special)
      return std::bit_cast<float>(sign | 0x7f800000u | (Infinity ? mantissa << (23 - M) : 0x400000u));
    if (exponent == 0) {  // zero or below the smallest normal number: mantissa * 2^(1 - bias - M)
      const float unit = std::bit_cast<float>(static_cast<std::uint32_t>(128 - bias - M) << 23);
      const float value = static_cast<float>(mantissa) * unit;
      return sign != 0 ? -value : value;
    }
    return std::bit_cast<float>(sign | ((exponent + static_cast<std::uint32_t>(127 - bias)) << 23) |
                                (mantissa << (23 - M)));
  }

  /// Rounds to nearest, ties to even. Too large becomes infinity, or the largest number where there is none
  /// (as GPUs convert).
  static constexpr std::uint32_t encode(float value) noexcept {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (bits >> 31) != 0 ? sign_bit : 0, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return sign | nan;
    const int exponent = static_cast<int>(magnitude >> 23) - 127 + bias;
    std::uint32_t result = 0;
    if (exponent > 0) {
      const std::uint64_t scaled = (static_cast<std::uint64_t>(exponent) << 23) | (magnitude & 0x7fffffu);
      result = rounded(scaled, 23 - M);
    } else if (exponent > -M - 1) {
      result = rounded((magnitude & 0x7fffffu) | 0x800000u, 23 - M + 1 - exponent);
    }
    if (result > largest) result = Infinity ? exponent_mask << M : largest;
    return sign | result;
  }

 private:
  static constexpr std::uint32_t rounded(std::uint64_t value, int shift) noexcept {
    const std::uint64_t half = std::uint64_t{1} << (shift - 1), kept = value >> shift,
                        rest = value & (2 * half - 1);
    const std::uint64_t up = rest > half || (rest == half && (kept & 1) != 0) ? 1 : 0;
    return kept + up > 0xffffffffu ? 0xffffffffu : static_cast<std::uint32_t>(kept + up);
  }
};

using Fp16 = Format<5, 10, true>;
using Fp8 = Format<4, 3, false>;
using Fp8E5m2 = Format<5, 2, true>;
/// The upper half of a float.
struct Bf16 {
  static constexpr float decode(std::uint32_t bits) noexcept {
    return to_float({static_cast<std::uint16_t>(bits)});
  }
  static constexpr std::uint32_t encode(float value) noexcept { return to_bfloat(value).bits; }
};

}  // namespace assay::kernels
