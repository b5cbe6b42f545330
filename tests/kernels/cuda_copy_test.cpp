// SPDX-License-Identifier: Apache-2.0
#include <random>

#include "kernels/copy.hpp"
#include "tests/kernels/cuda_contract.hpp"

namespace assay::test {
namespace {

using CudaCopy = CudaKernel;

TEST_F(CudaCopy, MovesEveryByteAndNoOther) {
  std::mt19937 random(3);
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{16}, std::size_t{31}, std::size_t{200001}})
    for (const std::size_t shift : {std::size_t{0}, std::size_t{1}, std::size_t{16}}) {
      std::vector<unsigned char> source(bytes + 32), expected(bytes + 64, 0x77);
      for (auto& byte : source) byte = static_cast<unsigned char>(random());
      const OnDevice<unsigned char> from(source), to(expected);
      kernels::cuda::copy(to.get() + 16, from.get() + shift, bytes, nullptr);
      finish();
      std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(shift), bytes, expected.begin() + 16);
      EXPECT_EQ(to.host(), expected) << bytes << " from " << shift;
    }
}

}  // namespace
}  // namespace assay::test
