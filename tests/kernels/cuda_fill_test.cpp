// SPDX-License-Identifier: Apache-2.0
// Operands made on a GPU: bit for bit the host's where the host makes them, and the definition of
// kernels/fill.hpp, written down again from the formats, where it does not.
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "fresh.hpp"
#include "kernels/fill.hpp"
#include "tests/kernels/cuda_contract.hpp"

namespace assay::test {
namespace {

using kernels::Element;

struct Format {
  Element type;
  const char* name;
  int exponent_bits, mantissa_bits;  ///< of floating formats
};
const Format formats[] = {{Element::tf32, "tf32", 8, 10},        {Element::fp16, "fp16", 5, 10},
                          {Element::bf16, "bf16", 8, 7},         {Element::fp8, "fp8", 4, 3},
                          {Element::fp8_e5m2, "fp8_e5m2", 5, 2}, {Element::int8, "int8", 0, 0}};

/// The value that stored bits stand for, by the definition of the format.
double value_of(const Format& f, std::uint32_t bits) {
  if (f.type == Element::int8) return static_cast<std::int8_t>(bits);
  if (f.type == Element::tf32) {
    float x;
    std::memcpy(&x, &bits, 4);
    return static_cast<double>(x);
  }
  const int bias = (1 << (f.exponent_bits - 1)) - 1;
  const auto mantissa = static_cast<double>(bits & ((1u << f.mantissa_bits) - 1)) / (1 << f.mantissa_bits);
  const auto exponent = static_cast<int>(bits >> f.mantissa_bits & ((1u << f.exponent_bits) - 1));
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, 1 - bias) : std::ldexp(1 + mantissa, exponent - bias);
  return (bits >> (f.exponent_bits + f.mantissa_bits) & 1) != 0 ? -magnitude : magnitude;
}

/// The fp32 value that an element is cut from.
double uncut(std::uint64_t key, std::size_t index) {
  float x = 0;
  kernels::host::fill_uniform_fp32(&x, 1, key, index);
  return static_cast<double>(x);
}

class CudaFill : public FreshCudaKernel {
 protected:
  /// Elements [first, first + count) as stored; `shift` elements into an allocation, with what lies around
  /// checked.
  std::vector<std::uint32_t> made(Element type, std::size_t count, std::uint64_t key, std::size_t first,
                                  std::size_t shift, int limit = -1) {
    const std::size_t size = kernels::element_bytes(type);
    const OnDevice<unsigned char> memory((count + shift + 16) * size);
    void* start = memory.get() + shift * size;
    if (limit < 0)
      kernels::cuda::fill_uniform(type, start, count, key, first, nullptr);
    else
      kernels::cuda::fill_integer(type, start, count, key, first, limit, nullptr);
    finish();
    const auto bytes = memory.host();
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (i < shift * size || i >= (shift + count) * size) {
        EXPECT_EQ(bytes[i], 0xa5) << "wrote outside";
      }
    }
    std::vector<std::uint32_t> elements(count);
    for (std::size_t i = 0; i < count; ++i)
      std::memcpy(&elements[i], bytes.data() + (shift + i) * size, std::min<std::size_t>(size, 4));
    return elements;
  }
};

TEST_F(CudaFill, SinglesAndDoublesAreTheHostsBitForBit) {
  for (const std::size_t count :
       {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{4}, 5000 + below(3000)}) {
    for (const std::size_t shift : {std::size_t{0}, std::size_t{1}}) {
      const std::uint64_t key = bits();
      const std::size_t first = below(2) == 0 ? 0 : (std::size_t{1} << 33) + below(100);
      const int limit = static_cast<int>(below(1 << 24));
      std::vector<float> f(count + 8, 9), fi(count + 8, 9);
      std::vector<double> d(count + 8, 9), di(count + 8, 9);
      const OnDevice<float> df(f), dfi(fi);
      const OnDevice<double> dd(d), ddi(di);
      kernels::cuda::fill_uniform(Element::fp32, df.get() + shift, count, key, first, nullptr);
      kernels::cuda::fill_uniform(Element::fp64, dd.get() + shift, count, key, first, nullptr);
      kernels::cuda::fill_integer(Element::fp32, dfi.get() + shift, count, key, first, limit, nullptr);
      kernels::cuda::fill_integer(Element::fp64, ddi.get() + shift, count, key, first, limit, nullptr);
      finish();
      kernels::host::fill_uniform_fp32(f.data() + shift, count, key, first);
      kernels::host::fill_uniform_fp64(d.data() + shift, count, key, first);
      kernels::host::fill_integer_fp32(fi.data() + shift, count, key, first, limit);
      kernels::host::fill_integer_fp64(di.data() + shift, count, key, first, limit);
      EXPECT_EQ(df.host(), f);
      EXPECT_EQ(dd.host(), d);
      EXPECT_EQ(dfi.host(), fi);
      EXPECT_EQ(ddi.host(), di);
    }
  }
}

TEST_F(CudaFill, NarrowTypesHoldTheValueCutTowardsZero) {
  for (const Format& f : formats) {
    if (f.type == Element::int8) continue;
    SCOPED_TRACE(f.name);
    const std::uint64_t key = bits();
    const std::size_t count = 20'000 + below(1000), first = below(1000);
    const auto got = made(f.type, count, key, first, below(3));
    const int bias = (1 << (f.exponent_bits - 1)) - 1;
    for (std::size_t i = 0; i < count; ++i) {
      const double exact = uncut(key, first + i), value = value_of(f, got[i]);
      const int exponent = std::max(exact == 0 ? -1000 : std::ilogb(exact), 1 - bias);
      const double unit = std::ldexp(1.0, exponent - f.mantissa_bits);
      ASSERT_EQ(value, std::trunc(exact / unit) * unit) << i << ": " << exact;
      ASSERT_EQ(std::signbit(value), std::signbit(exact)) << i;
      if (f.type == Element::tf32) {
        ASSERT_EQ(got[i] & 0x1fffu, 0u);
      }
    }
  }
}

TEST_F(CudaFill, NarrowTypesAreSpreadAndNotConstant) {
  for (const Format& f : formats) {
    SCOPED_TRACE(f.name);
    const std::size_t count = 40'000;
    const auto got = made(f.type, count, bits(), 0, 0);
    const double scale = f.type == Element::int8 ? 127 : 1;
    const bool byte = f.type == Element::fp8 || f.type == Element::fp8_e5m2;
    std::map<std::uint32_t, std::size_t> often;
    double sum = 0, squares = 0;
    for (const std::uint32_t bits : got) {
      const double x = value_of(f, bits) / scale;
      ASSERT_LE(std::abs(x), 1.0);
      sum += x;
      squares += x * x;
      ++often[bits];
    }
    // Cutting towards zero takes up to half a unit of the last place off.
    EXPECT_NEAR(sum / count, 0.0, 0.02);
    EXPECT_NEAR(squares / count, 1.0 / 3, byte ? std::ldexp(0.4, -f.mantissa_bits) : 0.01);
    std::size_t most = 0;
    for (const auto& [bits, n] : often) most = std::max(most, n);
    // Half of the numbers lie in [0.5, 1), which has four of e5m2 of each sign, eight of e4m3.
    EXPECT_LT(most, count / (f.type == Element::fp8_e5m2 ? 12 : 20)) << "one value comes too often";
    EXPECT_GE(often.size(), byte ? 80u : f.type == Element::int8 ? 255u : 1000u);
  }
}

TEST_F(CudaFill, IntegersAreExactAndReachBothLimitsEvenly) {
  for (const Format& f : formats) {
    for (const int limit : {0, 3, kernels::largest_exact_integer(f.type)}) {
      SCOPED_TRACE(std::string(f.name) + " limit " + std::to_string(limit));
      const std::uint64_t key = bits();
      const std::size_t count = 30'000, first = below(1000);
      const auto got = made(f.type, count, key, first, 0, limit);
      std::vector<double> exact(count);
      kernels::host::fill_integer_fp64(exact.data(), count, key, first, limit);
      std::set<double> values;
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(value_of(f, got[i]), exact[i]) << i;
        values.insert(exact[i]);
      }
      if (limit <= 256) {
        EXPECT_EQ(values.size(), 2u * static_cast<unsigned>(limit) + 1);
      }
    }
  }
}

TEST_F(CudaFill, AnElementDependsOnKeyAndIndexOnly) {
  for (const Format& f : formats) {
    const std::uint64_t key = bits();
    const std::size_t cut = 1 + below(998);
    auto parts = made(f.type, cut, key, 0, 1);
    const auto rest = made(f.type, 1000 - cut, key, cut, 0);
    parts.insert(parts.end(), rest.begin(), rest.end());
    EXPECT_EQ(parts, made(f.type, 1000, key, 0, 0)) << f.name;
    EXPECT_NE(parts, made(f.type, 1000, key + 1, 0, 0)) << f.name;
  }
}

}  // namespace
}  // namespace assay::test
