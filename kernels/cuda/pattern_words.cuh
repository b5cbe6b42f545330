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
  std::uint32_t magic = 0;       ///< modulo: 2^32 / modulus + 1 where that divides exactly enough, or 0
  std::uint64_t reciprocal = 0;  ///< modulo: the largest integer below 2^64 / modulus
  std::uint64_t key = 0, mask = 0, flip = 0;  ///< flip: xor of every word (folded into `key` of toggle)
};

/// index modulo w.modulus, without a division: the quotient by the reciprocal is right or one too small.
__host__ __device__ inline std::uint64_t residue_of(const Words& w, std::uint64_t index) {
  __extension__ using Wide = unsigned __int128;
  const auto quotient = static_cast<std::uint64_t>((Wide{index} * w.reciprocal) >> 64);
  const std::uint64_t rest = index - quotient * w.modulus;
  return rest < w.modulus ? rest : rest - w.modulus;
}

/// A thread's words in a tile are at fixed distances from its first one. What they share is computed once per
/// tile: the index (toggle, powers), the counter of the hash, the position of the bit, or the index modulo
/// the modulus.
template <Form form>
__host__ __device__ inline std::uint64_t tile_state(const Words& w, std::uint64_t index) {
  if constexpr (form == Form::hash) return w.key + index * address_step;
  if constexpr (form == Form::walking) return index + w.shift;
  if constexpr (form == Form::modulo) return residue_of(w, index);
  return index;
}

/// Below 4096 apart and 4096 for the modulus, n * magic < 2^32 * (n / modulus + 1), so the quotient is exact.
inline constexpr std::uint32_t magic_modulus_end = 4096;

__host__ __device__ inline bool hits(const Words& w, std::uint64_t residue, std::uint32_t offset) {
  if (w.magic == 0)
    return residue + offset == w.target || residue + offset == std::uint64_t{w.target} + w.modulus;
  const auto n = static_cast<std::uint32_t>(residue) + offset;
  const auto quotient = static_cast<std::uint32_t>((std::uint64_t{n} * w.magic) >> 32);
  return n - quotient * w.modulus == w.target;
}

/// The word `offset` (below 4096) behind the one that `state` belongs to.
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
    case Form::toggle: return word_at<Form::toggle>(w, tile_state<Form::toggle>(w, index), 0);
    case Form::hash: return word_at<Form::hash>(w, tile_state<Form::hash>(w, index), 0);
    case Form::walking: return word_at<Form::walking>(w, tile_state<Form::walking>(w, index), 0);
    case Form::powers: return word_at<Form::powers>(w, tile_state<Form::powers>(w, index), 0);
    case Form::modulo: break;
  }
  return word_at<Form::modulo>(w, tile_state<Form::modulo>(w, index), 0);
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
      w.reciprocal = ~std::uint64_t{0} / w.modulus;
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

/// A block visits one tile: every thread has `pairs` pairs of words in it, one block's width apart. With many
/// small blocks an H200 verifies and writes 4.24 TB/s, where blocks that loop over the region reach 3.73;
/// what only verifies is worth more words of a thread. The emulation pays for blocks.
struct TileShape {
  unsigned threads, pairs;
  constexpr std::size_t tile_pairs() const { return std::size_t{threads} * pairs; }
};
constexpr TileShape tile_shape(bool verify, bool write) {
#ifdef ASSAY_CUDA_EMULATION
  return verify && write ? TileShape{256, 2} : TileShape{256, 4};
#else
  if (verify) return write ? TileShape{128, 2} : TileShape{256, 8};
  return {256, 1};
#endif
}
static_assert(tile_shape(true, false).tile_pairs() * 2 * sizeof(std::uint64_t) <= device_tile_bytes);

/// The tile of a block: `down` begins at the end, and `rotation`, below the number of tiles, moves all
/// blocks, so that after a change of it other multiprocessors see what was written.
__host__ __device__ constexpr std::size_t tile_of(std::size_t block, std::size_t tiles, std::size_t rotation,
                                                  bool down) {
  const std::size_t place = block < tiles - rotation ? block + rotation : block - (tiles - rotation);
  return down ? tiles - 1 - place : place;
}

/// The rotation of sweep number `turn`. Consecutive sweeps differ by half the multiprocessors and one:
/// another one, whether neighbouring blocks run on neighbouring multiprocessors or on the same.
constexpr std::size_t rotation_of(std::uint64_t turn, std::size_t tiles, unsigned multiprocessors) {
  return turn % tiles * (multiprocessors / 2 + 1) % tiles;
}

}  // namespace assay::kernels::cuda
