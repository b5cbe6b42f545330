// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::kernels {

/// Sum over i of mix64(word_i ^ (i + first_word + 1) * 0x9e3779b97f4a7c15) modulo 2^64: parts of a buffer may
/// be digested in any order, by any number of threads, and added. A tail shorter than 8 bytes is
/// zero-extended; any alignment.
/// Poison: NaN in every 131st word, so that what later writes nothing, or not all, shows in the digest. 131
/// is prime: over the rows of a matrix the words lie in all columns, so that no tile is without one.
inline constexpr std::size_t poison_step = 131;
inline constexpr std::uint64_t poison_word = ~std::uint64_t{0};

namespace host {
std::uint64_t digest(const void* data, std::size_t bytes, std::uint64_t first_word) noexcept;
void poison(void* data, std::size_t bytes) noexcept;
}  // namespace host
namespace cuda {
/// Adds the digest to `*sum` (device memory). `data` is 16-byte aligned. Work: one read of the data.
void digest(const void* data, std::size_t bytes, std::uint64_t first_word, std::uint64_t* sum, void* stream);
/// Work: a write of 8 of every 1048 bytes.
void poison(void* data, std::size_t bytes, void* stream);
}  // namespace cuda
}  // namespace assay::kernels
