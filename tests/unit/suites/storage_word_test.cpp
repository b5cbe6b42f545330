// SPDX-License-Identifier: Apache-2.0
// Words that say where they belong, and damage that is told apart, located and counted.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

#include "base/random.hpp"
#include "suites/storage/damage_log.hpp"
#include "suites/storage/word.hpp"

namespace assay::storage {
namespace {

constexpr std::uint64_t block_words = 2048, key = 0x1234567890abcdefULL;
const Known known{key, 8, 6, 64 * block_words};

std::vector<std::uint64_t> block_of(const WordAddress& address) {
  std::vector<std::uint64_t> data(block_words);
  fill(key, address, data);
  return data;
}

TEST(StorageWord, EveryWordSaysWhereItBelongs) {
  const RandomStream random(7, "places");
  for (std::uint64_t i = 0; i < 10000; ++i) {
    const WordAddress address{random.below(3 * i, 1 << 16), random.below(3 * i + 1, 1 << 12),
                              random.below(3 * i + 2, std::uint64_t{1} << 36)};
    ASSERT_EQ(address_of(key, word_of(key, address)), address);
    ASSERT_NE(address_of(key + 1, word_of(key, address)), address) << "of another run";
  }
  const auto data = block_of({3, 2, 5 * block_words});
  EXPECT_EQ(data[17], word_of(key, {3, 2, 5 * block_words + 17}));
}

TEST(StorageWord, RightDataHaveNoFinding) {
  const WordAddress address{3, 2, 5 * block_words};
  EXPECT_TRUE(check(known, address, block_of(address), block_words).empty());
}

/// Something wrong with a block of `address`, and what must be said of it.
struct Harm {
  Damage damage;
  std::uint64_t words, first;
  std::size_t read = block_words;
};
using Injury = std::function<Harm(std::vector<std::uint64_t>& data, const WordAddress& address,
                                  const RandomStream& random)>;

std::uint64_t below(const RandomStream& random, std::uint64_t index, std::uint64_t from, std::uint64_t to) {
  return from + random.below(index, to - from);
}

/// Of words [first, first + count) of the block, what belongs to `from` instead.
void put(std::vector<std::uint64_t>& data, std::uint64_t first, std::uint64_t count,
         const WordAddress& from) {
  fill(key, {from.file, from.generation, from.word + first}, std::span(data).subspan(first, count));
}

WordAddress drawn_address(const RandomStream& random) {
  return {random.below(0, 8), below(random, 1, 1, 6), random.below(2, 60) * block_words};
}

class EachDamage : public testing::TestWithParam<const char*> {};
const std::map<std::string, Injury>& injuries();

TEST_P(EachDamage, IsToldLocatedAndCountedEveryTime) {
  int right = 0;
  for (int trial = 0; trial < 100; ++trial) {
    const RandomStream random(static_cast<std::uint64_t>(trial), "injury");
    const WordAddress address = drawn_address(random);
    auto data = block_of(address);
    const Harm harm = injuries().at(GetParam())(data, address, random.child("more"));
    const auto found =
        check(known, address, std::span<const std::uint64_t>(data).first(harm.read), block_words);
    ASSERT_EQ(found.size(), 1u) << "trial " << trial;
    EXPECT_STREQ(to_string(found[0].damage), to_string(harm.damage)) << "trial " << trial;
    EXPECT_EQ(found[0].words, harm.words) << "trial " << trial;
    EXPECT_EQ(found[0].first, (address.word + harm.first) * 8) << "trial " << trial;
    EXPECT_EQ(found[0].expected, word_of(key, {address.file, address.generation, address.word + harm.first}));
    right += found[0].damage == harm.damage && found[0].words == harm.words;
  }
  EXPECT_EQ(right, 100);
}

Harm flip(std::vector<std::uint64_t>& data, const WordAddress&, const RandomStream& random) {
  const std::uint64_t at = random.below(0, block_words);
  for (std::uint64_t i = 0; i <= random.below(1, 8); ++i)
    data[at] ^= std::uint64_t{1} << (random.below(2, 8) + 7 * i);
  return {Damage::flip, 1, at};
}
Harm stale(std::vector<std::uint64_t>& data, const WordAddress& address, const RandomStream& random) {
  put(data, 0, block_words, {address.file, random.below(0, address.generation), address.word});
  return {Damage::stale, block_words, 0};
}
Harm torn(std::vector<std::uint64_t>& data, const WordAddress& address, const RandomStream& random) {
  const std::uint64_t first = random.below(0, block_words),
                      count = below(random, 1, 1, block_words - (first == 0 ? 1 : first) + 1);
  put(data, first, count, {address.file, random.below(2, address.generation), address.word});
  return {Damage::torn, count, first};
}
Harm other_offset(std::vector<std::uint64_t>& data, const WordAddress& address, const RandomStream& random) {
  const std::uint64_t count = below(random, 0, 1, block_words + 1);
  put(data, 0, count, {address.file, address.generation, address.word + 2 * block_words});
  return {Damage::misdirect, count, 0};
}
Harm other_file(std::vector<std::uint64_t>& data, const WordAddress& address, const RandomStream& random) {
  put(data, 0, block_words, {(address.file + below(random, 0, 1, 8)) % 8, random.below(1, 6), address.word});
  return {Damage::misdirect, block_words, 0};
}
Harm cut(std::vector<std::uint64_t>&, const WordAddress&, const RandomStream& random) {
  const std::uint64_t read = random.below(0, block_words);
  return {Damage::short_data, block_words - read, read, read};
}
Harm zeros(std::vector<std::uint64_t>& data, const WordAddress&, const RandomStream& random) {
  const std::uint64_t first = random.below(0, block_words);
  std::fill(data.begin() + static_cast<std::ptrdiff_t>(first), data.end(), 0);
  return {Damage::foreign, block_words - first, first};
}
Harm of_another_run(std::vector<std::uint64_t>& data, const WordAddress& address, const RandomStream&) {
  fill(mix64(key, 1), address, data);
  return {Damage::foreign, block_words, 0};
}

const std::map<std::string, Injury>& injuries() {
  static const std::map<std::string, Injury> all{
      {"flip", flip},       {"stale", stale}, {"torn", torn},   {"offset", other_offset},
      {"file", other_file}, {"short", cut},   {"zeros", zeros}, {"run", of_another_run}};
  return all;
}
INSTANTIATE_TEST_SUITE_P(StorageWord, EachDamage,
                         testing::Values("flip", "stale", "torn", "offset", "file", "short", "zeros", "run"),
                         [](const auto& each) { return std::string(each.param); });

TEST(StorageWord, AWordOfEachSectorTellsWhatIsWrongWithASector) {
  int flips = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    const RandomStream random(static_cast<std::uint64_t>(trial), "sector");
    const WordAddress address = drawn_address(random);
    auto data = block_of(address);
    ASSERT_TRUE(sectors_are_right(known, address, data));
    data[random.below(3, block_words)] ^= 1;
    flips += !sectors_are_right(known, address, data);
    data = block_of(address);
    put(data, random.below(4, block_words - sector_words), sector_words, {address.file, 0, address.word});
    ASSERT_FALSE(sectors_are_right(known, address, data)) << "trial " << trial;
  }
  EXPECT_GT(flips, 0) << "the words that are compared are others each time";
  EXPECT_LT(flips, 50) << "few of them are compared";
}

TEST(StorageWord, SelfTestCatchesWhatItInjects) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const auto row = self_test(RandomStream(seed, "self-test"), 3);
    ASSERT_EQ(row.injected, 6);
    ASSERT_EQ(row.caught, 6) << seed;
    ASSERT_EQ(row.located, 6) << seed;
    ASSERT_EQ(row.counted, 6) << seed;
  }
}

}  // namespace
}  // namespace assay::storage
