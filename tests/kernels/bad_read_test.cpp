// SPDX-License-Identifier: Apache-2.0
// Checks of blocks, whose words are compared one by one when the block differs: a word that is right by then
// is an error all the same.
#include <bit>
#include <vector>

#include "fresh.hpp"
#include "kernels/exact.hpp"
#include "kernels/payload.hpp"

namespace assay {
namespace {

namespace host = kernels::host;

constexpr std::size_t payload_block = 64, exact_block = 1024;
std::size_t bad_at = 0;  ///< where the block begins that is compared wrongly
int compared = 0;        ///< blocks, before this one

/// Finds all words equal, but once the block at `bad_at` different.
std::size_t equal_words(std::uint64_t, const unsigned char*, std::size_t from, std::size_t words,
                        bool& differs) noexcept {
  differs = from <= bad_at;
  return differs ? bad_at : words;
}

bool blocks_differ(const float*, const float*, std::size_t) noexcept {
  return static_cast<std::size_t>(compared++) == bad_at / exact_block;
}

class BadRead : public test::LinkRetest {};

TEST_F(BadRead, OfAPayloadIsAnErrorOfItsBlock) {
  const kernels::PayloadKey key = kernels::payload_key(bits(), 1, 2, 3);
  std::vector<std::uint64_t> data(8 * payload_block);
  const std::size_t bytes = data.size() * sizeof(data[0]);
  host::payload_fill(key, data.data(), bytes);
  bad_at = payload_block * below(8);
  const auto errors = host::payload_check(key, data.data(), bytes, equal_words);
  EXPECT_EQ(errors.count, 1U);
  EXPECT_EQ(errors.first_index, bad_at);
  EXPECT_EQ(errors.expected, kernels::payload_word(key, bad_at));
  EXPECT_EQ(errors.actual, errors.expected);
  EXPECT_EQ(host::payload_check(key, data.data(), bytes).count, 0U);
}

TEST_F(BadRead, OfAnExactSumIsAnErrorOfItsBlock) {
  constexpr kernels::ExactLine line{3.0f, 17.0f, 0x9e3779b9u, 0x12345u, 8};
  std::vector<float> data(4 * exact_block);
  host::exact_fill(line, 99, data.data(), data.size());
  bad_at = exact_block * below(4);
  compared = 0;
  const auto errors = host::exact_check(line, 99, data.data(), data.size(), blocks_differ);
  EXPECT_EQ(errors.count, 1U);
  EXPECT_EQ(errors.first_index, bad_at);
  EXPECT_EQ(errors.expected, std::bit_cast<std::uint32_t>(data[bad_at]));
  EXPECT_EQ(errors.actual, errors.expected);
  EXPECT_EQ(host::exact_check(line, 99, data.data(), data.size()).count, 0U);
}

}  // namespace
}  // namespace assay
