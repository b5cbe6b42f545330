// SPDX-License-Identifier: Apache-2.0
// Fresh random inputs for every run; the seed is printed when a test fails, and ASSAY_TEST_SEED brings it
// back.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

namespace assay::test {

/// What is drawn, and from which seed.
class Dice {
 public:
  Dice()
      : seed_(choose()),
        generator_(seed_),
        trace_(__FILE__, __LINE__, "ASSAY_TEST_SEED=" + std::to_string(seed_)) {}

  std::uint64_t bits() { return generator_(); }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(generator_() % n); }

 private:
  static std::uint64_t choose() {
    const char* wish = std::getenv("ASSAY_TEST_SEED");
    if (wish != nullptr) return std::strtoull(wish, nullptr, 10);
    std::random_device device;
    return (static_cast<std::uint64_t>(device()) << 32) | device();
  }

  std::uint64_t seed_;
  std::mt19937_64 generator_;
  ::testing::ScopedTrace trace_;
};

class LinkRetest : public ::testing::Test {
 protected:
  std::uint64_t bits() { return dice_.bits(); }
  std::size_t below(std::size_t n) { return dice_.below(n); }

 private:
  Dice dice_;
};

}  // namespace assay::test
