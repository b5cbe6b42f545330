// SPDX-License-Identifier: Apache-2.0
#include "kernels/digest.hpp"

#include <cstring>

#define ASSAY_BODY "kernels/host/digest_body.inc"
#include "kernels/host/foreach_isa.inc"

namespace assay::kernels::host {

std::uint64_t digest(const void* data, std::size_t bytes, std::uint64_t first_word) noexcept {
  const auto* p = static_cast<const unsigned char*>(data);
  const std::size_t words = bytes / 8;
  std::uint64_t total = ASSAY_DISPATCH(digest_words, p, words, first_word);
  if (const std::size_t tail = bytes % 8; tail != 0) {
    unsigned char padded[8] = {};
    std::memcpy(padded, p + words * 8, tail);
    total += ASSAY_DISPATCH(digest_words, padded, 1, first_word + words);
  }
  return total;
}

void poison(void* data, std::size_t bytes) noexcept {
  auto* words = static_cast<unsigned char*>(data);
  for (std::size_t i = 0; i < bytes / 8; i += poison_step)
    std::memcpy(words + 8 * i, &poison_word, sizeof poison_word);
}

}  // namespace assay::kernels::host
