// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::kernels {

/// sum over i of mix64(word_i ^ mix-of(i + first)) modulo 2^64: parts of a buffer may be digested in any order, by any
/// number of threads, and added. A tail shorter than 8 bytes is zero-extended.
namespace host {
std::uint64_t digest(const void* data, std::size_t bytes, std::uint64_t first_word) noexcept;
}
}  // namespace assay::kernels
