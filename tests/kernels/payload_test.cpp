// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <vector>

#include "fresh.hpp"
#include "kernels/payload.hpp"

namespace assay {
namespace {

using kernels::payload_key;
using kernels::PayloadKey;
namespace host = kernels::host;

class Payload : public test::LinkRetest {};

/// Written from the description, not from the kernel.
std::vector<unsigned char> naive(PayloadKey key, std::size_t bytes) {
  std::vector<unsigned char> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    std::uint64_t x = key.value + (i / 8 + 1) * 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    x ^= x >> 31;
    unsigned char word[8];
    std::memcpy(word, &x, 8);
    data[i] = word[i % 8];
  }
  return data;
}

TEST_F(Payload, EverySizeAndAlignmentMatchesTheDefinition) {
  const PayloadKey key = payload_key(bits(), 3, 5, 7);
  std::vector<std::size_t> sizes;
  for (std::size_t b = 0; b <= 80; ++b) sizes.push_back(b);
  for (int i = 0; i < 40; ++i) sizes.push_back(below(20000));
  for (const std::size_t bytes : sizes) {
    const std::size_t shift = below(9);
    std::vector<unsigned char> data(bytes + shift + 16, 0xee);
    host::payload_fill(key, data.data() + shift, bytes);
    const auto expected = naive(key, bytes);
    ASSERT_TRUE(
        std::equal(expected.begin(), expected.end(), data.begin() + static_cast<std::ptrdiff_t>(shift)))
        << bytes;
    for (std::size_t i = 0; i < data.size(); ++i) {
      if (i < shift || i >= shift + bytes) {
        ASSERT_EQ(data[i], 0xee) << "wrote outside, size " << bytes;
      }
    }
    ASSERT_EQ(host::payload_check(key, data.data() + shift, bytes).count, 0u) << bytes;
  }
}

TEST_F(Payload, EverySingleBitIsSeen) {
  const PayloadKey key = payload_key(bits(), 0, 1, 0);
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{7}, std::size_t{8}, std::size_t{1029}}) {
    auto data = naive(key, bytes);
    for (std::size_t bit = 0; bit < bytes * 8; ++bit) {
      data[bit / 8] ^= static_cast<unsigned char>(1u << (bit % 8));
      const auto errors = host::payload_check(key, data.data(), bytes);
      data[bit / 8] ^= static_cast<unsigned char>(1u << (bit % 8));
      ASSERT_EQ(errors.count, 1u) << "bit " << bit << " of " << bytes << " bytes";
      ASSERT_EQ(errors.first_index, bit / 64);
      ASSERT_EQ(errors.expected ^ errors.actual, std::uint64_t{1} << (bit % 64));
    }
  }
}

TEST_F(Payload, CountsEveryWrongWordOnce) {
  const PayloadKey key = payload_key(bits(), 0, 1, 0);
  auto data = naive(key, 80'003);
  std::vector<std::size_t> words;
  for (int i = 0; i < 500; ++i) words.push_back(below(10'001));
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  for (const std::size_t w : words) data[w * 8] ^= 1;
  const auto errors = host::payload_check(key, data.data(), data.size());
  EXPECT_EQ(errors.count, words.size());
  EXPECT_EQ(errors.first_index, words.front());
  std::fill(data.begin(), data.end(), static_cast<unsigned char>(0));
  EXPECT_EQ(host::payload_check(key, data.data(), data.size()).count, 10'001u)
      << "a buffer of zeros must be all wrong";
}

TEST_F(Payload, EachPartOfTheKeyMatters) {
  const std::uint64_t seed = bits();
  const auto base = payload_key(seed, 1, 2, 3);
  std::vector<unsigned char> data(4096);
  host::payload_fill(base, data.data(), data.size());
  for (const PayloadKey other :
       {payload_key(seed + 1, 1, 2, 3), payload_key(seed, 2, 2, 3), payload_key(seed, 2, 1, 3),
        payload_key(seed, 1, 3, 3), payload_key(seed, 1, 2, 4), payload_key(seed, -1, 2, 3)})
    EXPECT_EQ(host::payload_check(other, data.data(), data.size()).count, 512u);
}

TEST_F(Payload, ShiftedDataIsWrong) {
  const auto key = payload_key(bits(), 1, 2, 3);
  std::vector<unsigned char> data(4096 + 8);
  host::payload_fill(key, data.data(), data.size());
  EXPECT_EQ(host::payload_check(key, data.data() + 8, 4096).count, 512u);
}

}  // namespace
}  // namespace assay
