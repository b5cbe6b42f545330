// SPDX-License-Identifier: Apache-2.0
// The words of a Data in the form that a GPU makes them fastest, and which block of a grid visits which part
// of a region. Private to pattern.cu and its test.
#pragma once

#include <cuda_runtime.h>

#include "kernels/pattern.hpp"

namespace assay::kernels::cuda {

/// - toggle: `key`, xor `mask` where bit `shift` of the index is 1; all backgrounds that are constant or
/// stripes
/// - hash: address_hash(key, index)
/// - walking, modulo, powers: as Background says
enum class Form : std::uint32_t { toggle, hash, walking, modulo, powers };

struct Words {
  Form form = Form::toggle;
  std::uint32_t shift = 63;               ///< toggle; walking: the variant
  std::uint32_t modulus = 1, target = 0;  ///< modulo
  std::uint32_t magic = 0;  ///< modulo: 2^32 / modulus + 1 where that divides exactly enough, or 0
  std::uint64_t key = 0, mask = 0, flip = 0;  ///< flip: xor of every word (folded into `key` of toggle)
};

/// A thread's words in a tile are at fixed distances from its first one. What they share is computed once per
/// tile: the index (toggle, powers), the counter of the hash, the position of the bit, or the index modulo
/// the modulus (`residue`).
template <Form form>
__host__ __device__ inline std::uint64_t tile_state(const Words& w, std::uint64_t index,
                                                    std::uint32_t residue) {
  if constexpr (form == Form::hash) return w.key + index * address_step;
  if constexpr (form == Form::walking) return index + w.shift;
  if constexpr (form == Form::modulo) return residue;
  return index;
}

/// Below 2048 apart and 4096 for the modulus, n * magic < 2^32 * (n / modulus + 1), so the quotient is exact.
inline constexpr std::uint32_t magic_modulus_end = 4096;

__host__ __device__ inline bool hits(const Words& w, std::uint64_t residue, std::uint32_t offset) {
  if (w.magic == 0)
    return residue + offset == w.target || residue + offset == std::uint64_t{w.target} + w.modulus;
  const auto n = static_cast<std::uint32_t>(residue) + offset;
  const auto quotient = static_cast<std::uint32_t>((std::uint64_t{n} * w.magic) >> 32);
  return n - quotient * w.modulus == w.target;
}

/// The word `offset` (below 2048) behind the one that `state` belongs to.
template <Form form>
__host__ __device__ inline std::uint64_t word_at(const Words& w, std::uint64_t state, std::uint32_t offset) {
  if constexpr (form == Form::toggle)
    return w.key ^ (w.mask & (std::uint64_t{0} - ((state + offset) >> w.shift & 1)));
  if constexpr (form == Form::walking) return w.flip ^ std::uint64_t{1} << ((state + offset) & 63);
  if constexpr (form == Form::modulo) return hits(w, state, offset) ? ~w.flip : w.flip;
  if constexpr (form == Form::powers) {
    const std::uint64_t index = state + offset;
    return index != 0 && (index & (index - 1)) == 0 ? w.flip ^ address_hash(w.key, index) : w.flip;
  }
  const std::uint64_t counter = state + offset * address_step;
  const std::uint64_t x = (counter ^ (counter >> 32)) * address_multiplier;
  return x ^ (x >> 29) ^ w.flip;
}

/// Any word of any form; for ends that fill no vector.
__host__ __device__ inline std::uint64_t any_word(const Words& w, std::uint64_t index) {
  switch (w.form) {
    case Form::toggle: return word_at<Form::toggle>(w, tile_state<Form::toggle>(w, index, 0), 0);
    case Form::hash: return word_at<Form::hash>(w, tile_state<Form::hash>(w, index, 0), 0);
    case Form::walking: return word_at<Form::walking>(w, tile_state<Form::walking>(w, index, 0), 0);
    case Form::powers: return word_at<Form::powers>(w, tile_state<Form::powers>(w, index, 0), 0);
    case Form::modulo: break;
  }
  return word_at<Form::modulo>(w, index % w.modulus, 0);
}

/// Prepares what any_word and word_at compute as data_word does.
inline Words words_of(const Data& data) {
  Words w;
  w.key = data.key;
  w.flip = data.inverted ? ~std::uint64_t{0} : 0;
  switch (data.kind) {
    case Background::own_address:
    case Background::random: w.form = Form::hash; return w;
    case Background::walking: w.form = Form::walking, w.shift = data.variant % 64; return w;
    case Background::powers: w.form = Form::powers; return w;
    case Background::modulo:
      w.modulus = data.variant == 0 ? 1 : data.variant;
      w.target = static_cast<std::uint32_t>(data.key % w.modulus);
      w.magic = w.modulus > 1 && w.modulus < magic_modulus_end
                    ? static_cast<std::uint32_t>((std::uint64_t{1} << 32) / w.modulus) + 1
                    : 0;
      if (w.modulus > 1) w.form = Form::modulo;
      w.key = ~w.flip;  // modulus 1: all words are ones
      return w;
    case Background::toggle: w.mask = data.mask, w.shift = data.variant < 63 ? data.variant : 63; break;
    case Background::solid: w.key = 0; break;
    case Background::checkerboard:
      w.key = 0xaaaaaaaaaaaaaaaaULL, w.mask = ~std::uint64_t{0}, w.shift = 0;
      break;
    case Background::stripe:
      w.key = data_word({Background::stripe, 0, data.variant, false}, 0);
      if (data.variant > 6)
        w.mask = ~std::uint64_t{0}, w.shift = data.variant - 7 < 63 ? data.variant - 7 : 63;
      break;
  }
  w.key ^= w.flip;
  return w;
}

/// A block works on tiles: every thread has four pairs of words in each, one block's width apart.
inline constexpr unsigned sweep_threads = 256, pairs_per_thread = 4;
inline constexpr std::size_t tile_pairs = std::size_t{sweep_threads} * pairs_per_thread;
static_assert(tile_pairs * 2 * sizeof(std::uint64_t) == device_tile_bytes);

/// The n-th tile of a block. Blocks take tiles in turn; `rotation` moves the turns, so that after a change of
/// it other blocks, and with them other multiprocessors, see what was written. n * blocks + place < tiles;
/// `down` begins at the end.
__host__ __device__ constexpr std::size_t tile_place(std::size_t n, unsigned block, unsigned blocks,
                                                     unsigned rotation) {
  return n * blocks + (block + rotation) % blocks;
}
__host__ __device__ constexpr std::size_t tile_at(std::size_t place, std::size_t tiles, bool down) {
  return down ? tiles - 1 - place : place;
}

/// How far the turns of sweep number `turn` are moved. Consecutive sweeps differ by half the multiprocessors
/// and one: another one, whether neighbouring blocks run on neighbouring multiprocessors or on the same.
constexpr unsigned rotation_of(std::uint64_t turn, unsigned blocks, unsigned multiprocessors) {
  return static_cast<unsigned>(turn % blocks * (multiprocessors / 2 + 1) % blocks);
}

}  // namespace assay::kernels::cuda
