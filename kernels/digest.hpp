// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::kernels {

/// Sum over i of mix64(word_i ^ (i + first_word + 1) * 0x9e3779b97f4a7c15) modulo 2^64: parts of a buffer may
/// be digested in any order, by any number of threads, and added. A tail shorter than 8 bytes is
/// zero-extended; any alignment.
/// Poison: NaN in every `step`th word, so that what later writes nothing, or not all, shows in the digest.
inline constexpr std::uint64_t poison_word = ~std::uint64_t{0};
inline constexpr std::size_t most_poison_step = 131;
/// The step for a matrix with rows of so many bytes: the largest with which the poisoned words of any 64 rows
/// lie in columns so close to each other that no tile of 64 rows and 128 bytes is without one. 64 elements of
/// a result are as wide or wider.
std::size_t poison_step(std::size_t row_bytes) noexcept;

namespace host {
std::uint64_t digest(const void* data, std::size_t bytes, std::uint64_t first_word) noexcept;
void poison(void* data, std::size_t bytes, std::size_t step) noexcept;
}  // namespace host
namespace cuda {
/// Adds the digest to `*sum` (device memory). `data` is 16-byte aligned. Work: one read of the data.
void digest(const void* data, std::size_t bytes, std::uint64_t first_word, std::uint64_t* sum, void* stream);
/// Work: a write of one word of `step`.
void poison(void* data, std::size_t bytes, std::size_t step, void* stream);
}  // namespace cuda
}  // namespace assay::kernels
