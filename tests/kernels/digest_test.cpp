// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/random.hpp"
#include "fresh.hpp"
#include "kernels/digest.hpp"

namespace assay {
namespace {

namespace host = kernels::host;

class Digest : public test::LinkRetest {
 protected:
  std::vector<unsigned char> random_bytes(std::size_t n) {
    std::vector<unsigned char> v(n);
    for (auto& b : v) b = static_cast<unsigned char>(bits());
    return v;
  }
};

std::uint64_t naive(const std::vector<unsigned char>& data, std::uint64_t first) {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i * 8 < data.size(); ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, data.data() + i * 8, std::min<std::size_t>(8, data.size() - i * 8));
    total += mix64(word ^ ((i + first + 1) * 0x9e3779b97f4a7c15ULL));
  }
  return total;
}

TEST_F(Digest, MatchesTheDefinitionForEverySize) {
  for (std::size_t n = 0; n < 300; ++n) {
    const auto data = random_bytes(n);
    const std::uint64_t first = bits();
    ASSERT_EQ(host::digest(data.data(), n, first), naive(data, first)) << n;
  }
}

TEST_F(Digest, PartsAddUpInAnyOrder) {
  const auto data = random_bytes(8 * 1000 + 3);
  const std::uint64_t whole = host::digest(data.data(), data.size(), 0);
  const std::size_t cut1 = below(500), cut2 = 500 + below(500);
  const std::uint64_t last = host::digest(data.data() + cut2 * 8, data.size() - cut2 * 8, cut2);
  const std::uint64_t first = host::digest(data.data(), cut1 * 8, 0);
  const std::uint64_t middle = host::digest(data.data() + cut1 * 8, (cut2 - cut1) * 8, cut1);
  EXPECT_EQ(last + first + middle, whole);
}

TEST_F(Digest, EverySingleBitAndEverySwapChangesIt) {
  auto data = random_bytes(61);
  const std::uint64_t whole = host::digest(data.data(), data.size(), 0);
  for (std::size_t bit = 0; bit < data.size() * 8; ++bit) {
    data[bit / 8] ^= static_cast<unsigned char>(1u << (bit % 8));
    ASSERT_NE(host::digest(data.data(), data.size(), 0), whole) << bit;
    data[bit / 8] ^= static_cast<unsigned char>(1u << (bit % 8));
  }
  for (std::size_t w = 1; w < 7; ++w) {
    auto swapped = data;
    std::swap_ranges(swapped.begin(), swapped.begin() + 8,
                     swapped.begin() + static_cast<std::ptrdiff_t>(8 * w));
    ASSERT_NE(host::digest(swapped.data(), swapped.size(), 0), whole) << w;
  }
}

/// Whether each tile of 64 rows and 128 bytes holds a part of a poisoned word.
bool every_tile_is_poisoned(std::size_t row_bytes, std::size_t rows) {
  std::vector<unsigned char> matrix(rows * row_bytes / 8 * 8);
  host::poison(matrix.data(), matrix.size(), kernels::poison_step(row_bytes));
  const std::size_t tiles = row_bytes / 128;
  std::vector<bool> found(rows / 64 * tiles);
  for (std::size_t at = 0; at < matrix.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, matrix.data() + at, sizeof word);
    const std::size_t row = at / row_bytes, tile = at % row_bytes / 128;
    if (word == kernels::poison_word && tile < tiles) found[row / 64 * tiles + tile] = true;
  }
  return std::find(found.begin(), found.end(), false) == found.end();
}

/// Rows of a multiple of 131 words, or of one more or less, a half, a third: with one word of 131 the words
/// of 64 rows lie close to each other, and between them are tiles without one.
TEST_F(Digest, NoTileOfAMatrixIsWithoutPoisonWhateverItsRows) {
  for (std::size_t words = 16; words < 600; ++words)
    ASSERT_TRUE(every_tile_is_poisoned(8 * words, 128)) << words;
  for (int i = 0; i < 100; ++i) {
    const std::size_t row_bytes = 2 * (64 + below(6000));  // no whole words
    ASSERT_TRUE(every_tile_is_poisoned(row_bytes, 128)) << row_bytes;
  }
  for (const std::size_t n : {256u, 1024u, 2048u, 4096u, 8192u, 16384u})
    for (const std::size_t element : {2u, 4u, 8u})
      EXPECT_EQ(kernels::poison_step(n * element), kernels::most_poison_step) << n << " " << element;
}

}  // namespace
}  // namespace assay
