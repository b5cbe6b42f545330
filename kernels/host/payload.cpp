// SPDX-License-Identifier: Apache-2.0
#include "kernels/payload.hpp"

#include <algorithm>
#include <cstring>

namespace assay::kernels::host {
namespace {
/// Longest run of words compared one by one after a block differed; at least one block of the widest vector.
constexpr std::size_t careful_words = 64;
}  // namespace
}  // namespace assay::kernels::host

#define ASSAY_BODY "kernels/host/payload_body.inc"
#include "kernels/host/foreach_isa.inc"

namespace assay::kernels {

PayloadKey payload_key(std::uint64_t seed, int source, int destination, std::uint64_t iteration) noexcept {
  const auto pair = (static_cast<std::uint64_t>(static_cast<std::uint32_t>(source)) << 32) |
                    static_cast<std::uint32_t>(destination);
  return {mix64(mix64(seed, pair), iteration)};
}

namespace host {
namespace {

void note(PayloadErrors& errors, std::size_t index, std::uint64_t expected, std::uint64_t actual) noexcept {
  if (errors.count++ == 0) {
    errors.first_index = index;
    errors.expected = expected;
    errors.actual = actual;
  }
}

std::size_t equal_words(std::uint64_t key, const unsigned char* data, std::size_t from, std::size_t words,
                        bool& differs) noexcept {
  return ASSAY_DISPATCH(payload_equal_words, key, data, from, words, differs);
}

}  // namespace

void payload_fill(PayloadKey key, void* data, std::size_t bytes) noexcept {
  auto* p = static_cast<unsigned char*>(data);
  const std::size_t words = bytes / 8;
  ASSAY_DISPATCH(payload_fill_words, key.value, p, words);
  const std::uint64_t last = payload_word(key, words);
  std::memcpy(p + words * 8, &last, bytes % 8);
}

PayloadErrors payload_check(PayloadKey key, const void* data, std::size_t bytes) noexcept {
  return payload_check(key, data, bytes, equal_words);
}

PayloadErrors payload_check(PayloadKey key, const void* data, std::size_t bytes, EqualWords equal) noexcept {
  const auto* p = static_cast<const unsigned char*>(data);
  const std::size_t words = bytes / 8;
  PayloadErrors errors;
  for (std::size_t i = 0; i < words;) {
    bool differs = false;
    i = equal(key.value, p, i, words, differs);
    const std::size_t block = i, end = std::min(words, i + careful_words);
    const std::uint64_t before = errors.count;
    for (; i < end; ++i) {
      std::uint64_t actual;
      std::memcpy(&actual, p + i * 8, 8);
      const std::uint64_t expected = payload_word(key, i);
      if (actual != expected) note(errors, i, expected, actual);
    }
    // Wrong when first read, right when looked at again: a bad read or a bad comparison, and an error all the
    // same.
    if (differs && errors.count == before) {
      const std::uint64_t expected = payload_word(key, block);
      note(errors, block, expected, expected);
    }
  }
  if (const std::size_t tail = bytes % 8; tail != 0) {
    std::uint64_t actual = 0, expected = 0;
    const std::uint64_t word = payload_word(key, words);
    std::memcpy(&actual, p + words * 8, tail);
    std::memcpy(&expected, &word, tail);
    if (actual != expected) note(errors, words, expected, actual);
  }
  return errors;
}

}  // namespace host
}  // namespace assay::kernels
