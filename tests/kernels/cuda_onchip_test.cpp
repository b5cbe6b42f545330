// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "fresh.hpp"
#include "kernels/onchip.hpp"
#include "tests/kernels/cuda_contract.hpp"

namespace assay::test {
namespace {

using namespace kernels;
namespace cu = kernels::cuda;

class CudaOnChip : public FreshCudaKernel {
 protected:
  static constexpr std::size_t capacity = 64;

  void SetUp() override {
    FreshCudaKernel::SetUp();
    if (IsSkipped()) return;
    errors_.emplace(cu::errors_bytes(capacity));
    visited_.emplace(std::vector<std::uint32_t>(visited_words, 0));
    cu::clear_errors(buffer(), capacity, nullptr);
  }
  DeviceErrors* buffer() const { return reinterpret_cast<DeviceErrors*>(errors_->get()); }
  std::uint32_t* visited() const { return visited_->get(); }
  DeviceErrors found(std::vector<DeviceRecord>* records = nullptr) {
    finish();
    const auto bytes = errors_->host();
    DeviceErrors sum;
    std::memcpy(&sum, bytes.data(), sizeof(sum));
    if (records != nullptr) {
      records->resize(std::min<std::size_t>(sum.kept, capacity));
      std::memcpy(records->data(), bytes.data() + sizeof(sum), records->size() * sizeof(DeviceRecord));
    }
    return sum;
  }
  int multiprocessors_seen() const {
    int n = 0;
    for (const std::uint32_t word : visited_->host()) n += std::popcount(word);
    return n;
  }
  static int multiprocessors() {
    int count = 0;
    EXPECT_EQ(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0), cudaSuccess);
    return count;
  }

 private:
  std::optional<OnDevice<unsigned char>> errors_;
  std::optional<OnDevice<std::uint32_t>> visited_;
};

/// The index of the word that these bits were made for.
constexpr std::size_t l1_index(std::uint32_t word) noexcept { return (word >> 16 ^ word) & 0xffff; }

TEST(L1Word, SaysWhereItBelongs) {
  for (std::size_t i = 0; i < l1_words; i += 7) EXPECT_EQ(l1_index(l1_word(99, i)), i);
  EXPECT_NE(l1_word(99, 5), l1_word(98, 5));
}

TEST_F(CudaOnChip, HealthyMemoryPassesOnEveryMultiprocessor) {
  const OnDevice<std::uint32_t> region(l1_words);
  const std::uint64_t key = bits();
  cu::l1_prepare(region.get(), key, nullptr);
  cu::l1_check(region.get(), key, 50, buffer(), visited(), nullptr);
  EXPECT_EQ(found().count, 0u);
  EXPECT_EQ(multiprocessors_seen(), multiprocessors());
  EXPECT_GT(cu::shared_march(key, ~std::size_t{0}, buffer(), visited(), nullptr), std::size_t{40} << 10);
  const OnDevice<std::uint64_t> words(20'000);
  cu::l2_write(words.get(), words.size(), key, nullptr);
  cu::l2_check(words.get(), words.size(), key, buffer(), visited(), nullptr);
  EXPECT_EQ(found().count, 0u);
}

TEST_F(CudaOnChip, MisplacedWordIsDecodedByEveryBlock) {
  const OnDevice<std::uint32_t> region(l1_words);
  const std::uint64_t key = bits();
  cu::l1_prepare(region.get(), key, nullptr);
  finish();
  const std::size_t at = below(l1_words), from = (at + 4096) % l1_words;
  auto words = region.host();
  words[at] = words[from];
  const OnDevice<std::uint32_t> broken(words);
  cu::l1_check(broken.get(), key, 20, buffer(), visited(), nullptr);
  std::vector<DeviceRecord> records;
  EXPECT_GE(found(&records).count, static_cast<unsigned>(multiprocessors()));
  ASSERT_FALSE(records.empty());
  for (const DeviceRecord& r : records) {
    EXPECT_EQ(r.index, at);
    EXPECT_EQ(l1_index(static_cast<std::uint32_t>(r.actual)), from);
    EXPECT_EQ(r.expected, l1_word(key, at));
    EXPECT_GE(r.sm, 0);
  }
}

TEST_F(CudaOnChip, ReloadsGoToManyPlaces) {
  const OnDevice<std::uint32_t> region(l1_words);
  const std::uint64_t key = bits();
  cu::l1_prepare(region.get(), key + 1, nullptr);
  cu::l1_check(region.get(), key, 0, buffer(), visited(), nullptr);
  const std::uint64_t once = found().count;
  cu::clear_errors(buffer(), capacity, nullptr);
  finish();
  auto words = region.host();
  std::fill(words.begin() + l1_words / 2, words.end(), 0);
  for (std::size_t i = 0; i < l1_words / 2; ++i) words[i] = l1_word(key, i);
  const OnDevice<std::uint32_t> half(words);
  cu::l1_check(half.get(), key, 64, buffer(), visited(), nullptr);
  // Half of the reloads, as of the first loads, meet a wrong word: 64 rounds are as many as 64 / 128 first
  // loads.
  EXPECT_NEAR(static_cast<double>(found().count), static_cast<double>(once) / 2 * 1.5,
              static_cast<double>(once) / 50);
}

TEST_F(CudaOnChip, AFlippedBitOfSharedMemoryIsFoundOnce) {
  for (const std::size_t at : {std::size_t{0}, std::size_t{1023}, std::size_t{1024}, below(5000)}) {
    cu::clear_errors(buffer(), capacity, nullptr);
    cu::shared_march(bits(), at, buffer(), visited(), nullptr);
    std::vector<DeviceRecord> records;
    const DeviceErrors sum = found(&records);
    ASSERT_EQ(sum.count, 1u) << at;
    EXPECT_EQ(records.at(0).index, at);
    EXPECT_EQ(records[0].expected ^ records[0].actual, std::uint64_t{1} << (at % 64));
    EXPECT_EQ(sum.bits[0][at % 64] + sum.bits[1][at % 64], 1u);
  }
}

TEST_F(CudaOnChip, WrongL2WordIsSeenByAllMultiprocessors) {
  const std::uint64_t key = bits();
  const OnDevice<std::uint64_t> region(5001);
  cu::l2_write(region.get(), region.size(), key, nullptr);
  finish();
  auto words = region.host();
  for (std::size_t i = 0; i < words.size(); ++i) ASSERT_EQ(words[i], address_hash(key, i));
  const std::size_t at = below(2) == 0 ? words.size() - 1 : below(words.size());
  words[at] ^= 1u << 9;
  const OnDevice<std::uint64_t> broken(words);
  cu::l2_check(broken.get(), broken.size(), key, buffer(), visited(), nullptr);
  std::vector<DeviceRecord> records;
  const DeviceErrors sum = found(&records);
  EXPECT_GE(sum.count, static_cast<unsigned>(multiprocessors()));
  EXPECT_EQ(sum.bits[0][9] + sum.bits[1][9], sum.count);
  for (const DeviceRecord& r : records) EXPECT_EQ(r.index, at);
  EXPECT_EQ(multiprocessors_seen(), multiprocessors());
}

}  // namespace
}  // namespace assay::test
