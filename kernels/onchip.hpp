// SPDX-License-Identifier: Apache-2.0
// Memory inside a GPU: L1 caches, shared memory, the L2 cache. Every kernel marks the multiprocessors that
// ran it, because a test that did not run on one says nothing about it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/random.hpp"
#include "kernels/pattern.hpp"

namespace assay::kernels {

/// Words of the L1 test: as many as fit the L1 cache of every GPU from sm_80 on, and 16 bits name. The low
/// half is the word's index, hidden by the random upper half: a word from another place says which.
inline constexpr std::size_t l1_words = 32 * 1024;
constexpr std::uint32_t l1_word(std::uint64_t key, std::size_t index) noexcept {
  const auto random = static_cast<std::uint32_t>(mix64(key + index * address_step) >> 48);
  return random << 16 | (random ^ static_cast<std::uint32_t>(index));
}

/// Multiprocessor numbers below this are marked.
inline constexpr std::size_t visited_words = 32, max_multiprocessors = 32 * visited_words;

namespace cuda {
/// `region`: l1_words words of device memory.
void l1_prepare(std::uint32_t* region, std::uint64_t key, void* stream);
/// Fills the L1 caches of all multiprocessors from the region, then loads `rounds` words per thread at random
/// places, by ld.global.ca and through the read-only path in turn. Adds to `errors` (index: of the 4-byte
/// word; `reread` past the cache) and marks `visited` (visited_words words of device memory).
void l1_check(const std::uint32_t* region, std::uint64_t key, unsigned rounds, DeviceErrors* errors,
              std::uint32_t* visited, void* stream);

/// March C- (van de Goor 1991) with address_hash data over the shared memory of one block per multiprocessor:
/// all that a block may have but 3 KiB, which belong to the system and to the test. Returns the bytes of a
/// block. `flip`: the word in which a bit is turned over on purpose after the first element; none for any
/// number beyond.
std::size_t shared_march(std::uint64_t key, std::size_t flip, DeviceErrors* errors, std::uint32_t* visited,
                         void* stream);

/// words[0, count) = address_hash(key, index), by all multiprocessors; and every one of them reads all of it
/// by loads that pass by the L1 cache. Half an L2 cache of words stays inside it.
void l2_write(std::uint64_t* words, std::size_t count, std::uint64_t key, void* stream);
void l2_check(const std::uint64_t* words, std::size_t count, std::uint64_t key, DeviceErrors* errors,
              std::uint32_t* visited, void* stream);
}  // namespace cuda
}  // namespace assay::kernels
