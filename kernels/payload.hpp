// SPDX-License-Identifier: Apache-2.0
// Message payloads: every word is a function of (source, destination, iteration, index), so that a receiver can check
// what it got without having been told.
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::kernels {

struct PayloadKey {
  std::uint64_t value = 0;
};
PayloadKey payload_key(std::uint64_t seed, int source, int destination, std::uint64_t iteration) noexcept;

struct PayloadErrors {
  std::uint64_t count = 0;  ///< wrong 8-byte words (a short tail counts as one)
  std::uint64_t first_index = 0, expected = 0, actual = 0;
};

namespace host {
/// Word i = mix64(key ^ i-dependent); sizes that are no multiple of 8 use the low bytes of the last word.
void payload_fill(PayloadKey key, void* data, std::size_t bytes) noexcept;
PayloadErrors payload_check(PayloadKey key, const void* data, std::size_t bytes) noexcept;
}  // namespace host
}  // namespace assay::kernels
