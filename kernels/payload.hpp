// SPDX-License-Identifier: Apache-2.0
// Message payloads: every word is a function of (source, destination, iteration, index), so that a receiver
// can check what it got without having been told.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/random.hpp"

namespace assay::kernels {

struct PayloadKey {
  std::uint64_t value = 0;
};
PayloadKey payload_key(std::uint64_t seed, int source, int destination, std::uint64_t iteration) noexcept;

/// Step of the counter that mix64 turns into words (the SplitMix64 generator, addressable at any index).
inline constexpr std::uint64_t payload_step = 0x9e3779b97f4a7c15ULL;
constexpr std::uint64_t payload_word(PayloadKey key, std::size_t index) noexcept {
  return mix64(key.value + index * payload_step);
}

struct PayloadErrors {
  std::uint64_t count = 0;  ///< wrong 8-byte words (a short tail counts as one)
  std::uint64_t first_index = 0, expected = 0, actual = 0;
};

namespace host {
/// Word i = payload_word(key, i); sizes that are no multiple of 8 use the first bytes of the last word in
/// memory order. Any alignment.
void payload_fill(PayloadKey key, void* data, std::size_t bytes) noexcept;
/// Words that differ as part of a block, of which none does when they are looked at one by one, count as one:
/// the first of the block, with `actual` equal to `expected`.
PayloadErrors payload_check(PayloadKey key, const void* data, std::size_t bytes) noexcept;
/// The first word from which a block differs, which sets `differs`, or the number of words that whole blocks
/// cover.
using EqualWords = std::size_t (*)(std::uint64_t key, const unsigned char* data, std::size_t from,
                                   std::size_t words, bool& differs) noexcept;
/// The same with another comparison of blocks, for tests of a bad one.
PayloadErrors payload_check(PayloadKey key, const void* data, std::size_t bytes, EqualWords equal) noexcept;
}  // namespace host

namespace cuda {
/// The same words; device memory, any alignment (16-byte accesses where the start allows it).
void payload_fill(PayloadKey key, void* data, std::size_t bytes, void* stream);
/// Sets `*errors` (device memory): an exact count and the first wrong word, `actual` as it reads when all
/// have been looked at (equal to `expected` after a bad read).
void payload_check(PayloadKey key, const void* data, std::size_t bytes, PayloadErrors* errors, void* stream);
}  // namespace cuda
}  // namespace assay::kernels
