// SPDX-License-Identifier: Apache-2.0
// Private to host/pattern.cpp: the words of a Data, prepared so that vectors of them cost a load or a few
// operations.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "kernels/pattern.hpp"

namespace assay::kernels::host {

inline constexpr std::size_t vector_words = 8;      ///< words of the widest vector
inline constexpr std::size_t tile_max_words = 512;  ///< longest period kept as a table
inline constexpr std::size_t block_max_words = 4096;

/// Words of `data` from index `origin` on: a hash of the index, or a table of one period (a multiple of the
/// vector).
struct Source {
  bool hashed = false;
  std::uint64_t flip = 0;     ///< hashed: all ones for the complement
  std::uint64_t counter = 0;  ///< hashed: state at `origin`
  std::size_t period = 0;     ///< words of the table, 0 if the period is too long for one
  alignas(64) std::uint64_t tile[tile_max_words];
};

/// Smallest multiple of the vector after which `data` repeats; 0 if it is hashed or longer than a table.
inline std::size_t period_words(const Data& data) noexcept {
  std::size_t period = vector_words;
  switch (data.kind) {
    case Background::own_address:
    case Background::random: return 0;
    case Background::solid:
    case Background::checkerboard: break;
    case Background::walking: period = 64; break;
    case Background::stripe:
      if (data.variant > 16) return 0;
      if (data.variant > 9) period = std::size_t{1} << (data.variant - 6);
      break;
    case Background::modulo:
      if (data.variant > tile_max_words) return 0;
      period = data.variant == 0 ? vector_words : std::lcm(std::size_t{data.variant}, vector_words);
      break;
    case Background::toggle:
      // Beyond 2^58 words no index of any memory has the bit.
      if (data.mask != 0 && data.variant < 58 && data.variant > 8) return 0;
      if (data.mask != 0 && data.variant < 58 && data.variant > 2) period = std::size_t{2} << data.variant;
      break;
    case Background::powers: break;  // zeros; the few others are left to the slow way (has_power)
  }
  return period <= tile_max_words ? period : 0;
}

inline void prepare(Source& source, const Data& data, std::size_t origin) noexcept {
  source.hashed = data.kind == Background::own_address || data.kind == Background::random;
  source.flip = data.inverted ? ~std::uint64_t{0} : 0;
  source.counter = data.key + origin * address_step;
  source.period = period_words(data);
  const Data regular = data.kind == Background::powers ? Data{Background::solid, 0, 0, data.inverted} : data;
  for (std::size_t i = 0; i < source.period; ++i) source.tile[i] = data_word(regular, origin + i);
}

/// [begin, end) holds an index with exactly one bit set.
inline bool has_power(std::size_t begin, std::size_t end) noexcept {
  return end > 1 && begin < end && std::bit_floor(end - 1) >= std::max<std::size_t>(begin, 1);
}

/// Words of a block: whole tables of both, near 4 KiB; 0 if there is no such length.
inline std::size_t block_words(const Source& a, const Source& b) noexcept {
  if ((!a.hashed && a.period == 0) || (!b.hashed && b.period == 0)) return 0;
  const std::size_t common = std::lcm(a.hashed ? vector_words : a.period, b.hashed ? vector_words : b.period);
  if (common > block_max_words) return 0;
  return common * (common < 512 ? 512 / common : 1);
}

}  // namespace assay::kernels::host
