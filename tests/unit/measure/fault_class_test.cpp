// SPDX-License-Identifier: Apache-2.0
#include "measure/fault_class.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "base/random.hpp"

namespace assay {
namespace {

constexpr std::uint64_t bit(int n) { return std::uint64_t{1} << n; }
std::uint64_t value_at(std::uint64_t index) { return mix64(index); }

/// A word in which the bits of `wrong` are turned over.
WrongWord flipped(std::uint64_t index, std::uint64_t wrong) {
  return {index, value_at(index), value_at(index) ^ wrong};
}

TEST(FaultClass, NothingAndOneWord) {
  EXPECT_EQ(classify_fault({}).kind, FaultClass::none);
  const std::vector<WrongWord> one = {flipped(12345, bit(3))}, twice = {one[0], one[0], one[0]};
  EXPECT_EQ(classify_fault(one).kind, FaultClass::cell);
  EXPECT_EQ(classify_fault(twice, value_at).kind, FaultClass::cell) << "the same word in several sweeps";
}

TEST(FaultClass, WordsOfOneRowEvenWithOneBitInCommon) {
  std::vector<WrongWord> words;
  for (const std::uint64_t i : {3u, 17u, 18u, 90u, 101u, 255u})
    words.push_back(flipped(1000 * 256 + i, bit(9)));
  EXPECT_EQ(classify_fault(words, value_at).kind, FaultClass::row);
  words.push_back(flipped(1000 * 256 + 300, bit(9)));
  EXPECT_NE(classify_fault(words, value_at).kind, FaultClass::row);
}

TEST(FaultClass, AConstantDistanceIsAColumn) {
  for (const std::uint64_t stride : {128u, 1000u, 1u << 20}) {
    std::vector<WrongWord> words;
    for (std::uint64_t i = 0; i < 50; ++i) words.push_back(flipped(77 + i * stride, bit(5)));
    const Fault fault = classify_fault(words, value_at);
    EXPECT_EQ(fault.kind, FaultClass::column) << stride;
    EXPECT_EQ(fault.stride, stride);
    EXPECT_EQ(fault.text(), "column, every " + std::to_string(stride) + " words");
  }
}

TEST(FaultClass, OneBitInManyPlacesIsADataLine) {
  std::mt19937_64 random(3);
  std::vector<WrongWord> words;
  for (int i = 0; i < 300; ++i) words.push_back(flipped(random() >> 30, bit(17)));
  Fault fault = classify_fault(words, value_at);
  EXPECT_EQ(fault.kind, FaultClass::data_line);
  EXPECT_EQ(fault.bit, 17);
  EXPECT_EQ(fault.text(), "data line 17");
  words.clear();  // every word of a long run, as a record of the first thousand shows it
  for (std::uint64_t i = 0; i < 1000; ++i) words.push_back(flipped(i, bit(63)));
  fault = classify_fault(words, value_at);
  EXPECT_EQ(fault.kind, FaultClass::data_line);
  EXPECT_EQ(fault.bit, 63);
}

TEST(FaultClass, DataOfAnotherAddressIsAnAddressLine) {
  for (const int line : {1, 5, 27}) {
    std::vector<WrongWord> words;  // a run in a row, and one over everything
    for (std::uint64_t i = 0; i < 1000; ++i)
      words.push_back({i * 3, value_at(i * 3), value_at(i * 3 ^ bit(line))});
    const Fault fault = classify_fault(words, value_at);
    EXPECT_EQ(fault.kind, FaultClass::address_line) << line;
    EXPECT_EQ(fault.bit, line);
  }
}

TEST(FaultClass, PairsOfIndicesAreAnAddressLineWhateverTheyHold) {
  std::mt19937_64 random(4);
  std::vector<WrongWord> words;
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t index = random() >> 34;
    for (const std::uint64_t at : {index, index ^ bit(21)}) words.push_back({at, 0, ~std::uint64_t{0}});
  }
  const Fault fault = classify_fault(words);
  EXPECT_EQ(fault.kind, FaultClass::address_line);
  EXPECT_EQ(fault.bit, 21);
}

TEST(FaultClass, WhatHasNothingInCommonIsScattered) {
  std::mt19937_64 random(5);
  std::vector<WrongWord> words;
  for (int i = 0; i < 200; ++i) words.push_back(flipped(random() >> 30, random()));
  EXPECT_EQ(classify_fault(words, value_at).kind, FaultClass::scattered);
  // Nine tenths must agree.
  for (int i = 0; i < 1000; ++i) words.push_back(flipped(random() >> 30, bit(40)));
  EXPECT_EQ(classify_fault(words, value_at).kind, FaultClass::scattered);
  for (int i = 0; i < 1000; ++i) words.push_back(flipped(random() >> 30, bit(40)));
  EXPECT_EQ(classify_fault(words, value_at).kind, FaultClass::data_line);
}

}  // namespace
}  // namespace assay
