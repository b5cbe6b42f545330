// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "fresh.hpp"
#include "kernels/payload.hpp"
#include "tests/kernels/cuda_contract.hpp"

namespace assay::test {
namespace {

using kernels::payload_key;
using kernels::PayloadErrors;
using kernels::PayloadKey;

class CudaPayload : public FreshCudaKernel {
 protected:
  static PayloadErrors check(PayloadKey key, const void* data, std::size_t bytes) {
    const OnDevice<PayloadErrors> errors(1);
    kernels::cuda::payload_check(key, data, bytes, errors.get(), nullptr);
    finish();
    return errors.host()[0];
  }
};

TEST_F(CudaPayload, EverySizeAndAlignmentIsTheHosts) {
  const PayloadKey key = payload_key(bits(), 3, 5, 7);
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{8}, std::size_t{15}, std::size_t{16},
        std::size_t{17}, std::size_t{4099}, 100'000 + below(1000)}) {
    for (const std::size_t shift : {std::size_t{0}, std::size_t{8}, 1 + below(15)}) {
      SCOPED_TRACE(std::to_string(bytes) + " bytes at " + std::to_string(shift));
      std::vector<unsigned char> expected(bytes + shift + 16, 0xee);
      const OnDevice<unsigned char> device(expected);
      kernels::cuda::payload_fill(key, device.get() + shift, bytes, nullptr);
      finish();
      kernels::host::payload_fill(key, expected.data() + shift, bytes);
      EXPECT_EQ(device.host(), expected);
      EXPECT_EQ(check(key, device.get() + shift, bytes).count, 0u);
      if (bytes == 0) continue;
      const PayloadErrors other = check({key.value + 1}, device.get() + shift, bytes);
      EXPECT_EQ(other.count, (bytes + 7) / 8);
      EXPECT_EQ(other.first_index, 0u);
    }
  }
}

TEST_F(CudaPayload, CountsEveryWrongWordOnceAndNamesTheFirst) {
  const PayloadKey key = payload_key(bits(), 0, 1, 0);
  const std::size_t bytes = 80'003;
  for (const std::size_t shift : {std::size_t{0}, std::size_t{4}}) {
    for (const std::size_t faults : {std::size_t{1}, std::size_t{200}}) {
      std::vector<unsigned char> data(bytes + shift);
      kernels::host::payload_fill(key, data.data() + shift, bytes);
      std::set<std::size_t> words;
      while (words.size() < faults) words.insert(below(bytes / 8 + 1));
      for (const std::size_t w : words) data[shift + w * 8] ^= static_cast<unsigned char>(1u << below(8));
      const OnDevice<unsigned char> device(data);
      const PayloadErrors got = check(key, device.get() + shift, bytes);
      const PayloadErrors want = kernels::host::payload_check(key, data.data() + shift, bytes);
      EXPECT_EQ(got.count, faults);
      EXPECT_EQ(got.first_index, *words.begin());
      EXPECT_EQ(got.expected, want.expected);
      EXPECT_EQ(got.actual, want.actual);
    }
  }
}

TEST_F(CudaPayload, EveryBitOfATailIsSeenAndNothingBehindIt) {
  const PayloadKey key = payload_key(bits(), 0, 1, 0);
  for (const std::size_t bytes : {std::size_t{5}, std::size_t{21}, std::size_t{16}}) {
    std::vector<unsigned char> data(bytes + 8, 0);
    kernels::host::payload_fill(key, data.data(), bytes);
    for (std::size_t bit = 0; bit < 8 * data.size(); ++bit) {
      data[bit / 8] ^= static_cast<unsigned char>(1u << (bit % 8));
      const OnDevice<unsigned char> device(data);
      const PayloadErrors got = check(key, device.get(), bytes);
      data[bit / 8] ^= static_cast<unsigned char>(1u << (bit % 8));
      ASSERT_EQ(got.count, bit < 8 * bytes ? 1u : 0u) << bit;
      if (got.count == 1) {
        ASSERT_EQ(got.first_index, bit / 64);
        ASSERT_EQ(got.expected ^ got.actual, std::uint64_t{1} << (bit % 64));
      }
    }
  }
}

}  // namespace
}  // namespace assay::test
