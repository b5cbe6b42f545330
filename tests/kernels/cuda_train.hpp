// SPDX-License-Identifier: Apache-2.0
// What tests of the training kernels for GPUs share: random numbers in either type, and how they are stored.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "fresh.hpp"
#include "kernels/bfloat.hpp"
#include "tests/kernels/cuda_contract.hpp"

namespace assay::test {

using kernels::Bfloat;

template <typename T>
inline constexpr bool is_bf16 = std::is_same_v<T, Bfloat>;
inline constexpr double unit32 = 0x1p-24, unit16 = 0x1p-8;  ///< rounding errors, relative
/// Of a store.
template <typename T>
inline constexpr double stored_unit = is_bf16<T> ? unit16 : 0;

inline float number(float x) { return x; }
inline float number(Bfloat x) { return kernels::to_float(x); }
inline void assign(float& to, float x) { to = x; }
inline void assign(Bfloat& to, float x) { to = kernels::to_bfloat(x); }

template <typename T>
std::vector<float> floats(const std::vector<T>& x) {
  std::vector<float> all;
  for (const T v : x) all.push_back(number(v));
  return all;
}
template <typename T>
std::vector<double> doubles(const std::vector<T>& x) {
  std::vector<double> all;
  for (const T v : x) all.push_back(static_cast<double>(number(v)));
  return all;
}
/// The nearest numbers of the type.
template <typename T>
std::vector<T> as(const std::vector<float>& x) {
  std::vector<T> all(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) assign(all[i], x[i]);
  return all;
}

class CudaTrain : public CudaKernel {
 protected:
  std::size_t below(std::size_t n) { return dice_.below(n); }
  /// Uniform in [-scale, scale).
  template <typename T>
  std::vector<T> random(std::size_t n, float scale = 1) {
    std::vector<T> v(n);
    for (T& x : v) assign(x, scale * (static_cast<float>(dice_.bits() >> 40) * 0x1.0p-23f - 1.0f));
    return v;
  }
  std::vector<std::int32_t> tokens(std::size_t n, std::size_t vocabulary) {
    std::vector<std::int32_t> v(n);
    for (auto& t : v) t = static_cast<std::int32_t>(below(vocabulary));
    return v;
  }
  template <typename T>
  static void expect_within(const std::vector<T>& have, const std::vector<double>& want,
                            const std::vector<double>& bound, const char* what) {
    ASSERT_EQ(have.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i)
      ASSERT_LE(std::abs(static_cast<double>(number(have[i])) - want[i]), bound[i])
          << what << " " << i << ": " << number(have[i]) << ", " << want[i];
  }
  /// Every bit, NaNs included.
  template <typename T>
  static void expect_equal_bits(const std::vector<T>& have, const std::vector<T>& want, const char* what) {
    ASSERT_EQ(have.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i)
      ASSERT_EQ(std::memcmp(&have[i], &want[i], sizeof(T)), 0)
          << what << " " << i << ": " << number(have[i]) << ", " << number(want[i]);
  }

 private:
  Dice dice_;
};

}  // namespace assay::test
