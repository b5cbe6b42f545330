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

}  // namespace
}  // namespace assay
