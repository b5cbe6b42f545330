// SPDX-License-Identifier: Apache-2.0
// What files hold: every word is a function of key, file, generation and offset, and can be turned back into
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace assay::storage {

/// Where a word belongs: at most 2^16 files, 2^12 generations and 2^36 words (512 GiB) of a file.
struct WordAddress {
  std::uint64_t file = 0, generation = 0, word = 0;
  bool operator==(const WordAddress&) const = default;
};

/// The word of `address` in the files of `key`: a bijection, so that a word found elsewhere says where it
/// belongs.
std::uint64_t word_of(std::uint64_t key, const WordAddress& address) noexcept;
/// The address whose word this is. Every word has one; only that of few is known.
WordAddress address_of(std::uint64_t key, std::uint64_t word) noexcept;

/// Fills `data` with the words from `address` on. Sizes are multiples of 8 bytes.
void fill(std::uint64_t key, WordAddress address, std::span<std::uint64_t> data) noexcept;

/// What is wrong with data that were read.
enum class Damage {
  flip,        ///< up to 8 bits differ
  stale,       ///< an older generation of the same file and offset, the whole block
  torn,        ///< an older generation in a part of the block
  misdirect,   ///< the words of another offset or file
  short_data,  ///< fewer bytes than the file holds
  foreign,     ///< nothing that this run wrote: zeros, or words of others
};
const char* to_string(Damage damage) noexcept;

/// Wrong words of one kind in one block.
struct Finding {
  Damage damage = Damage::flip;
  std::uint64_t words = 0;  ///< how many are wrong, exactly
  std::uint64_t first = 0;  ///< byte offset in the file of the first
  std::uint64_t expected = 0, actual = 0;
  std::optional<WordAddress> belongs;  ///< of a known word: where it belongs
};

/// What this run has written, so that a word can be told from chance.
struct Known {
  std::uint64_t key = 0;
  std::uint64_t files = 0;        ///< numbered from 0
  std::uint64_t generations = 0;  ///< numbered from 0
  std::uint64_t words = 0;        ///< of the longest file
  bool holds(const WordAddress& address) const noexcept {
    return address.file < files && address.generation < generations && address.word < words;
  }
};

/// Looks at a block of `expected_words` words from `address` on, of which the first `data.size()` were read.
/// No finding: all are right.
std::vector<Finding> check(const Known& known, const WordAddress& address,
                           std::span<const std::uint64_t> data, std::uint64_t expected_words);

/// Whether one word of each sector is right, at a place that depends on the address: of any 64 words in a row
/// one. Sees what is wrong with a whole sector; a wrong word only by chance.
inline constexpr std::size_t sector_words = 64;
bool sectors_are_right(const Known& known, const WordAddress& address,
                       std::span<const std::uint64_t> data) noexcept;

}  // namespace assay::storage
