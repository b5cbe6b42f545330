// SPDX-License-Identifier: Apache-2.0
// Normal numbers, each a function of its index: the same on every machine and in every order of tests.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <numbers>
#include <string>

#include "base/random.hpp"

namespace assay {

class Noise {
 public:
  explicit Noise(std::uint64_t seed) : stream_(mix64(seed)) {}
  double next() {
    const double u = 1 - stream_.uniform(2 * i_), v = stream_.uniform(2 * i_ + 1);
    ++i_;
    return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
  }

 private:
  RandomStream stream_;
  std::uint64_t i_ = 0;
};

/// Whether the long variants of the tests were asked for: scripts/test.sh --nightly.
inline bool nightly() {
  const char* value = std::getenv("ASSAY_NIGHTLY");
  return value != nullptr && std::string(value) == "1";
}

}  // namespace assay
