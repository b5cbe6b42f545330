// SPDX-License-Identifier: Apache-2.0
#include "kernels/digest.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#define ASSAY_BODY "kernels/host/digest_body.inc"
#include "kernels/host/foreach_isa.inc"

namespace assay::kernels {
namespace {

/// Bytes from one poisoned word to the next, at most, with those of 64 rows laid over each other.
std::size_t widest_gap(std::size_t row_bytes, std::size_t step) noexcept {
  constexpr std::size_t rows = 64;
  const std::size_t period = 8 * step;
  std::array<std::size_t, rows> places;
  for (std::size_t row = 0; row < rows; ++row) places[row] = row * (row_bytes % period) % period;
  std::sort(places.begin(), places.end());
  std::size_t gap = places.front() + period - places.back();
  for (std::size_t i = 1; i < rows; ++i) gap = std::max(gap, places[i] - places[i - 1]);
  return gap;
}

}  // namespace

std::size_t poison_step(std::size_t row_bytes) noexcept {
  constexpr std::size_t tile_bytes = 128;
  std::size_t step = most_poison_step;
  while (widest_gap(row_bytes, step) > tile_bytes) --step;  // to 16 at most: then each row of a tile has one
  return step;
}

namespace host {

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

void poison(void* data, std::size_t bytes, std::size_t step) noexcept {
  auto* words = static_cast<unsigned char*>(data);
  for (std::size_t i = 0; i < bytes / 8; i += step)
    std::memcpy(words + 8 * i, &poison_word, sizeof poison_word);
}

}  // namespace host
}  // namespace assay::kernels
