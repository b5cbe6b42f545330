// SPDX-License-Identifier: Apache-2.0
#include <random>

#include "kernels/digest.hpp"
#include "tests/kernels/cuda_contract.hpp"

namespace assay::test {
namespace {

using CudaDigest = CudaKernel;

TEST_F(CudaDigest, IsTheHostsForEverySize) {
  std::mt19937_64 random(7);
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{8}, std::size_t{15}, std::size_t{16},
        std::size_t{4099}, std::size_t{1} << 20, (std::size_t{1} << 20) + 13}) {
    std::vector<unsigned char> data(bytes + 16);
    for (auto& byte : data) byte = static_cast<unsigned char>(random());
    const OnDevice<unsigned char> device(data);
    const OnDevice<std::uint64_t> sum(std::vector<std::uint64_t>{5});
    kernels::cuda::digest(device.get(), bytes, 11, sum.get(), nullptr);
    finish();
    EXPECT_EQ(sum.host()[0], 5 + kernels::host::digest(data.data(), bytes, 11)) << bytes;
  }
}

TEST_F(CudaDigest, ChangesWithEveryBit) {
  std::vector<unsigned char> data(512, 0);
  const std::uint64_t zero = kernels::host::digest(data.data(), data.size(), 0);
  for (std::size_t bit = 0; bit < 8 * data.size(); bit += 37) {
    data[bit / 8] = static_cast<unsigned char>(1u << (bit % 8));
    const OnDevice<unsigned char> device(data);
    const OnDevice<std::uint64_t> sum(std::vector<std::uint64_t>{0});
    kernels::cuda::digest(device.get(), data.size(), 0, sum.get(), nullptr);
    EXPECT_NE(sum.host()[0], zero) << bit;
    data[bit / 8] = 0;
  }
}

TEST_F(CudaDigest, PoisonIsTheHosts) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{8}, std::size_t{4100}, std::size_t{1} << 20}) {
    std::vector<unsigned char> data(bytes, 1);
    const OnDevice<unsigned char> device(data);
    for (const std::size_t step : {kernels::most_poison_step, kernels::poison_step(131 * 8)}) {
      kernels::cuda::poison(device.get(), bytes, step, nullptr);
      finish();
      kernels::host::poison(data.data(), bytes, step);
      EXPECT_EQ(device.host(), data) << bytes << " " << step;
    }
  }
}

TEST_F(CudaDigest, NoTileOfAMatrixIsWithoutPoison) {
  constexpr std::size_t rows = 256;
  for (const std::size_t row_bytes : {2048u, 4096u, 8192u, 16384u, 32768u}) {
    std::vector<std::uint64_t> matrix(rows * row_bytes / 8, 0);
    kernels::host::poison(matrix.data(), 8 * matrix.size(), kernels::poison_step(row_bytes));
    const std::size_t width = row_bytes / 8, tile = 128 / 8;  // 64 rows of 64 elements of 2 bytes
    for (std::size_t top = 0; top < rows; top += 64)
      for (std::size_t left = 0; left < width; left += tile) {
        bool found = false;
        for (std::size_t i = 0; i < 64 * tile && !found; ++i)
          found = matrix[(top + i / tile) * width + left + i % tile] == kernels::poison_word;
        ASSERT_TRUE(found) << row_bytes << " " << top << " " << left;
      }
  }
}

}  // namespace
}  // namespace assay::test
