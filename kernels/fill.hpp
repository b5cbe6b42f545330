// SPDX-License-Identifier: Apache-2.0
// Random operands: every element is a function of (key, index), so any part may be filled by any thread, and
// a GPU makes the same bits as the host. Element i is made from the 64 bits mix64(key + i *
// 0x9e3779b97f4a7c15).
//
// Uniform in [-1, 1):
// - fp64: 52 random bits, fp32: 23 (both fixed-point: -1 + k * 2^-51 or 2^-22)
// - tf32, fp16, bf16, fp8 (e4m3), fp8_e5m2: the fp32 value cut towards zero to 10, 10, 7, 3 and 2 bits of
//   mantissa (below the least normal number: to its subnormals), so that the exponents are spread as those of
//   a uniform variable and all bits kept are random. tf32 is stored as fp32 with 13 zero bits: the tensor
//   cores round nothing off.
// - int8: uniform over the 255 integers from -127 to 127
// Integers: uniform in [-limit, limit], 0 <= limit <= largest_exact_integer(type).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/random.hpp"

namespace assay::kernels {

/// How an element is stored: 8, 4, 4, 2, 2, 1, 1, 1 bytes.
enum class Element { fp64, fp32, tf32, fp16, bf16, fp8, fp8_e5m2, int8 };

constexpr std::size_t element_bytes(Element type) noexcept {
  switch (type) {
    case Element::fp64: return 8;
    case Element::fp32:
    case Element::tf32: return 4;
    case Element::fp16:
    case Element::bf16: return 2;
    case Element::fp8:
    case Element::fp8_e5m2:
    case Element::int8: break;
  }
  return 1;
}

/// All integers up to it, of both signs, are exact in this type; 2^24 for fp64, too, where more are.
constexpr int largest_exact_integer(Element type) noexcept {
  switch (type) {
    case Element::fp64:
    case Element::fp32: return 1 << 24;
    case Element::tf32:
    case Element::fp16: return 1 << 11;
    case Element::bf16: return 1 << 8;
    case Element::fp8: return 1 << 4;
    case Element::fp8_e5m2: return 1 << 3;
    case Element::int8: break;
  }
  return 127;
}

constexpr std::uint64_t fill_bits(std::uint64_t key, std::size_t index) noexcept {
  return mix64(key + index * 0x9e3779b97f4a7c15ULL);
}

/// The bits of a float that is not too large for it in a format of `exponent_bits` and `mantissa_bits` with
/// the usual bias and subnormals, cut towards zero.
constexpr std::uint32_t narrowed(float x, int exponent_bits, int mantissa_bits) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(bits >> 23 & 0xff) - 127 + bias;
  const std::uint32_t sign = (bits >> 31) << (exponent_bits + mantissa_bits);
  const std::uint32_t mantissa = bits & 0x7fffff;
  if ((bits >> 23 & 0xff) == 0) return sign;  // 0, and what fp32 itself holds as subnormal
  if (exponent > 0)
    return sign | static_cast<std::uint32_t>(exponent) << mantissa_bits | mantissa >> (23 - mantissa_bits);
  const int shift =
      24 - mantissa_bits - exponent;  // one more place for each power of two below the least normal number
  return shift > 24 ? sign : sign | (mantissa | 0x800000) >> shift;
}

/// Bits of the element, in the low bytes of the result.
template <Element type>
constexpr std::uint64_t uniform_element(std::uint64_t bits) noexcept {
  if constexpr (type == Element::fp64) {
    return std::bit_cast<std::uint64_t>(std::bit_cast<double>((bits >> 12) | 0x3ff0000000000000ULL) * 2.0 -
                                        3.0);
  } else if constexpr (type == Element::int8) {
    return static_cast<std::uint8_t>(static_cast<std::int32_t>(((bits >> 32) * 255) >> 32) - 127);
  } else {
    // 23 random mantissa bits under the exponent of 1 give [1, 2); the rest is exact.
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(bits >> 41) | 0x3f800000u) * 2.0f - 3.0f;
    if constexpr (type == Element::fp16) return narrowed(x, 5, 10);
    if constexpr (type == Element::bf16) return narrowed(x, 8, 7);
    if constexpr (type == Element::fp8) return narrowed(x, 4, 3);
    if constexpr (type == Element::fp8_e5m2) return narrowed(x, 5, 2);
    return std::bit_cast<std::uint32_t>(x) & (type == Element::tf32 ? 0xffffe000u : 0xffffffffu);
  }
}

template <Element type>
constexpr std::uint64_t integer_element(std::uint64_t bits, int limit) noexcept {
  // Multiply-shift on the upper half; the bias is below span / 2^32.
  const std::uint64_t span = 2 * static_cast<std::uint64_t>(limit) + 1;
  const auto value = static_cast<std::int32_t>(((bits >> 32) * span) >> 32) - limit;
  if constexpr (type == Element::fp64) return std::bit_cast<std::uint64_t>(static_cast<double>(value));
  if constexpr (type == Element::int8) return static_cast<std::uint8_t>(value);
  const auto x = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if constexpr (type == Element::fp32 || type == Element::tf32) return x;
  // Exact in fewer bits: what is cut off is zero.
  const float exact = std::bit_cast<float>(x);
  if constexpr (type == Element::fp16) return narrowed(exact, 5, 10);
  if constexpr (type == Element::bf16) return narrowed(exact, 8, 7);
  return type == Element::fp8 ? narrowed(exact, 4, 3) : narrowed(exact, 5, 2);
}

namespace host {

/// data[i] uniform, for elements first .. first + count of an array that starts at `data - first`.
void fill_uniform_fp32(float* data, std::size_t count, std::uint64_t key, std::size_t first) noexcept;
void fill_uniform_fp64(double* data, std::size_t count, std::uint64_t key, std::size_t first) noexcept;
void fill_integer_fp32(float* data, std::size_t count, std::uint64_t key, std::size_t first,
                       int limit) noexcept;
void fill_integer_fp64(double* data, std::size_t count, std::uint64_t key, std::size_t first,
                       int limit) noexcept;

}  // namespace host

namespace cuda {
/// Device memory, aligned to its elements (16-byte stores where 16 divides the start).
void fill_uniform(Element type, void* data, std::size_t count, std::uint64_t key, std::size_t first,
                  void* stream);
void fill_integer(Element type, void* data, std::size_t count, std::uint64_t key, std::size_t first,
                  int limit, void* stream);
}  // namespace cuda
}  // namespace assay::kernels
