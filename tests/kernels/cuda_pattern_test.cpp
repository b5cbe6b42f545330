// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "fresh.hpp"
#include "kernels/cuda/pattern_words.cuh"
#include "kernels/pattern.hpp"
#include "tests/kernels/cuda_contract.hpp"

namespace assay::test {
namespace {

using namespace kernels;
namespace cu = kernels::cuda;

class CudaPatterns : public FreshCudaKernel {
 protected:
  static constexpr std::size_t capacity = 150;

  /// A region in device memory, `shift` words into an allocation, and the buffer for errors.
  struct Region {
    Region(std::size_t words, std::size_t shift)
        : memory(std::vector<std::uint64_t>(words + shift + 16, guard)),
          errors(cu::errors_bytes(capacity)),
          count(words),
          at(shift) {}
    std::uint64_t* words() const { return memory.get() + at; }
    std::vector<std::uint64_t> host() const {
      const auto all = memory.host();
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (i < at || i >= at + count) {
          EXPECT_EQ(all[i], guard) << "wrote outside, at " << i;
        }
      }
      return {all.begin() + static_cast<std::ptrdiff_t>(at),
              all.begin() + static_cast<std::ptrdiff_t>(at + count)};
    }
    void put(std::size_t word, std::uint64_t value) const {
      ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
      ASSERT_EQ(cudaMemcpy(words() + word, &value, 8, cudaMemcpyHostToDevice), cudaSuccess);
    }
    std::uint64_t get(std::size_t word) const {
      std::uint64_t value = 0;
      EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
      EXPECT_EQ(cudaMemcpy(&value, words() + word, 8, cudaMemcpyDeviceToHost), cudaSuccess);
      return value;
    }
    DeviceErrors* buffer() const { return reinterpret_cast<DeviceErrors*>(errors.get()); }

    static constexpr std::uint64_t guard = 0x5ca1ab1e0ddba11ULL;
    OnDevice<std::uint64_t> memory;
    OnDevice<unsigned char> errors;
    std::size_t count, at;
  };

  struct Found {
    DeviceErrors sum;
    std::vector<DeviceRecord> records;
  };
  /// One sweep and what it found, the second look included.
  Found run(const Sweep& s, const Region& region) {
    cu::clear_errors(region.buffer(), capacity, nullptr);
    cu::sweep(s, region.words(), region.count, turn_++, region.buffer(), nullptr);
    cu::look_again(region.words(), region.buffer(), 0, nullptr);
    cu::look_again(region.words(), region.buffer(), 1, nullptr);
    finish();
    const auto bytes = region.errors.host();
    Found found;
    std::memcpy(&found.sum, bytes.data(), sizeof(DeviceErrors));
    found.records.resize(std::min<std::size_t>(found.sum.kept, capacity));
    std::memcpy(found.records.data(), bytes.data() + sizeof(DeviceErrors),
                found.records.size() * sizeof(DeviceRecord));
    return found;
  }
  std::vector<Data> all_data(bool inverted) {
    std::vector<Data> all = {{Background::own_address, bits(), 0, inverted},
                             {Background::random, bits(), 0, inverted},
                             {Background::solid, bits(), 0, inverted},
                             {Background::checkerboard, bits(), 0, inverted},
                             {Background::powers, bits(), 0, inverted}};
    for (const std::uint32_t v : {0u, 1u, 31u, 63u}) all.push_back({Background::walking, 0, v, inverted});
    for (const std::uint32_t v : {0u, 1u, 2u, 6u, 7u, 8u, 13u, 16u, 63u})
      all.push_back({Background::stripe, 0, v, inverted});
    for (const std::uint32_t v : {0u, 1u, 2u, 20u, 23u, 511u, 4095u, 4096u, 5000u, 4'000'000'000u})
      all.push_back({Background::modulo, bits(), v, inverted});
    for (const std::uint32_t v : {0u, 1u, 7u, 12u, 63u})
      all.push_back({Background::toggle, bits(), v, inverted, bits()});
    return all;
  }

 private:
  std::uint64_t turn_ = 0;
};

TEST_F(CudaPatterns, LeaveTheSameWordsAsTheHost) {
  for (const std::string& name : pattern_names()) {
    const Pattern pattern = make_pattern(name, bits(), 0);
    for (const std::size_t n : {std::size_t{1}, std::size_t{2}, std::size_t{641}, 5000 + below(3000)}) {
      SCOPED_TRACE(name + ", " + std::to_string(n) + " words");
      const Region region(n, below(3));
      std::vector<std::uint64_t> model(n, Region::guard);
      ErrorLog log;
      const std::size_t every = std::max<std::size_t>(1, pattern.sweeps.size() / 12);
      for (std::size_t i = 0; i < pattern.sweeps.size(); ++i) {
        const Sweep& s = pattern.sweeps[i];
        EXPECT_EQ(run(s, region).sum.count, 0u) << "sweep " << i;
        const std::size_t half = n / 2;
        host::sweep(s, model.data(), 0, s.move ? half : n, half, 0, log);
        if (i % every == 0 || i + 1 == pattern.sweeps.size()) {
          ASSERT_EQ(region.host(), model) << "sweep " << i;
        }
      }
      EXPECT_EQ(log.count(), 0u);
    }
  }
}

TEST_F(CudaPatterns, EveryBackgroundAfterEveryOther) {
  auto all = all_data(false);
  for (const Data& data : all_data(true)) all.push_back(data);
  Data before;
  for (const Data& data : all) {
    SCOPED_TRACE("kind " + std::to_string(static_cast<int>(data.kind)) + " variant " +
                 std::to_string(data.variant));
    const std::size_t n = 3000 + below(3000);
    const Region region(n, below(2));
    Sweep s;
    s.write = true;
    s.next = before;
    s.down = below(2) == 1;
    run(s, region);
    s.verify = true;
    s.expected = before;
    s.next = data;
    EXPECT_EQ(run(s, region).sum.count, 0u);
    const auto words = region.host();
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(words[i], data_word(data, i)) << i;
    s.write = false;
    s.expected = data;
    EXPECT_EQ(run(s, region).sum.count, 0u);
    before = all[below(all.size())];
  }
}

TEST_F(CudaPatterns, BlockWithManyTilesKeepsItsPeriodOffset) {
  for (const std::uint32_t modulus : {20u, 23u, 5000u}) {
    for (const bool down : {false, true}) {
      const Region region(60'000 + below(5000), below(2));
      Sweep s;
      s.write = true;
      s.down = down;
      s.next = {Background::modulo, bits(), modulus, below(2) == 1};
      run(s, region);
      const auto words = region.host();
      for (std::size_t i = 0; i < words.size(); ++i)
        ASSERT_EQ(words[i], data_word(s.next, i)) << i << " modulo " << modulus;
      s.verify = true;
      s.expected = s.next;
      s.down = !down;
      EXPECT_EQ(run(s, region).sum.count, 0u);
    }
  }
}

TEST_F(CudaPatterns, HundredFlipsAreFoundAndLocated) {
  const auto kinds = all_data(false);
  int found = 0;
  for (int trial = 0; trial < 100; ++trial) {
    const std::size_t n = 4096 + below(3000), at = trial == 0 ? 0 : trial == 1 ? n - 1 : below(n);
    const Region region(n, below(2));
    Sweep write, check;
    write.write = check.verify = true;
    write.next = check.expected = kinds[below(kinds.size())];
    check.down = below(2) == 1;
    check.write = below(2) == 1;
    check.next = write.next;
    check.next.inverted = below(4) != 0;
    if (below(4) == 0) check.next = kinds[below(kinds.size())];
    run(write, region);
    const unsigned bit = static_cast<unsigned>(below(64));
    const std::uint64_t good = region.get(at), bad = good ^ std::uint64_t{1} << bit;
    region.put(at, bad);
    const Found errors = run(check, region);
    ASSERT_EQ(errors.sum.count, 1u) << trial;
    ASSERT_EQ(errors.records.size(), 1u);
    const DeviceRecord& r = errors.records[0];
    ASSERT_EQ(r.index, at);
    ASSERT_EQ(r.expected, good);
    ASSERT_EQ(r.actual, bad);
    ASSERT_EQ(r.reread[0], bad);
    ASSERT_EQ(r.reread[1], bad);
    ASSERT_GE(r.sm, 0);
    ASSERT_GE(r.warp, 0);
    ASSERT_TRUE(r.lane >= 0 && r.lane < 32);
    for (unsigned b = 0; b < 64; ++b) {
      ASSERT_EQ(errors.sum.bits[0][b], b == bit && (bad >> bit & 1) != 0 ? 1u : 0u);
      ASSERT_EQ(errors.sum.bits[1][b], b == bit && (bad >> bit & 1) == 0 ? 1u : 0u);
    }
    ASSERT_EQ(region.get(at), check.write ? data_word(check.next, at) : bad)
        << "what the sweep leaves, trial " << trial;
    ++found;
  }
  EXPECT_EQ(found, 100);
}

TEST_F(CudaPatterns, CountsAndHistogramAreExactBeyondTheRecords) {
  for (const Background kind : {Background::solid, Background::random, Background::modulo}) {
    const std::size_t n = 20'011;
    const Region region(n, 1);
    Sweep write, check;
    write.write = check.verify = check.write = true;
    write.next = check.expected = check.next = {kind, bits(), 23, false};
    check.next.inverted = true;
    run(write, region);
    std::set<std::size_t> bad;
    std::array<std::uint64_t, 128> wrong_bits{};
    for (int i = 0; i < 3000; ++i) bad.insert(below(n));
    for (const std::size_t b : bad) {
      const std::uint64_t good = data_word(check.expected, b), flip = bits() | 1;
      region.put(b, good ^ flip);
      for (unsigned bit = 0; bit < 64; ++bit)
        if ((flip >> bit & 1) != 0) ++wrong_bits[((good >> bit & 1) != 0 ? 64 : 0) + bit];
    }
    const Found errors = run(check, region);
    EXPECT_EQ(errors.sum.count, bad.size());
    for (unsigned i = 0; i < 128; ++i) EXPECT_EQ(errors.sum.bits[i / 64][i % 64], wrong_bits[i]) << i;
    std::set<std::size_t> named;
    for (const DeviceRecord& r : errors.records) named.insert(r.index);
    EXPECT_EQ(named.size(), capacity) << "records must name different words";
    for (const std::size_t w : named) EXPECT_TRUE(bad.contains(w));
    const auto words = region.host();
    for (std::size_t i = 0; i < n; ++i)
      ASSERT_EQ(words[i], data_word(check.next, i)) << "not repaired: " << i;
  }
}

TEST_F(CudaPatterns, AFoldedVerifySeesTheCopyAndEachOfItsWords) {
  const std::size_t n = 5001, half = n / 2;
  for (const bool engine : {false, true}) {
    const Region region(n, 1);
    Sweep write, move, check;
    write.write = move.move = check.verify = check.folded = true;
    move.engine = engine;
    write.next = check.expected = {Background::own_address, bits(), 0, false};
    run(write, region);
    run(move, region);
    EXPECT_EQ(run(check, region).sum.count, 0u);
    for (const std::size_t at : {std::size_t{0}, half - 1, half, half + 1, n - 2, n - 1}) {
      region.put(at, ~region.get(at));
      const Found errors = run(check, region);
      ASSERT_EQ(errors.sum.count, 1u) << at;
      ASSERT_EQ(errors.records.at(0).index, at);
      region.put(at, ~region.get(at));
    }
  }
}

TEST(CudaPatternWords, AreTheClosedFormForIndicesBeyond32Bits) {
  std::mt19937_64 random(11);
  const Background kinds[] = {Background::own_address,  Background::solid,  Background::walking,
                              Background::checkerboard, Background::stripe, Background::random,
                              Background::modulo,       Background::toggle, Background::powers};
  for (int i = 0; i < 20'000; ++i) {
    const Background kind = kinds[random() % std::size(kinds)];
    Data data{kind, random(), static_cast<std::uint32_t>(random() % 64), random() % 2 == 0, random()};
    if (kind == Background::modulo && random() % 2 == 0) data.variant = static_cast<std::uint32_t>(random());
    const std::uint64_t index =
        random() % 3 == 0 ? std::uint64_t{1} << (random() % 45) : random() >> (20 + random() % 40);
    ASSERT_EQ(cu::any_word(cu::words_of(data), index), data_word(data, index))
        << static_cast<int>(kind) << " variant " << data.variant << " index " << index;
  }
  // Offsets inside a tile are what the fast ways add.
  for (const std::uint32_t m : {2u, 3u, 20u, 2047u, 2048u, 4095u, 4096u, 4'294'967'295u}) {
    const Data data{Background::modulo, 7, m, false};
    const cu::Words words = cu::words_of(data);
    for (std::uint32_t offset = 0; offset < 4096; ++offset) {
      const std::uint64_t index = (std::uint64_t{5} << 32) + 3 * std::uint64_t{m} - 1000;
      ASSERT_EQ(cu::residue_of(words, index), index % m);
      ASSERT_EQ(cu::residue_of(words, ~index - offset), (~index - offset) % m);
      ASSERT_EQ(cu::word_at<cu::Form::modulo>(words, index % m, offset), data_word(data, index + offset))
          << m << " " << offset;
    }
  }
}

TEST(CudaPatternTiles, MoveToAnotherMultiprocessorEachSweep) {
  const unsigned multiprocessors = 132;
  const std::size_t tile_pairs = cu::tile_shape(true, true).tile_pairs();
  const std::size_t tiles = (std::size_t{40} << 30) / 16 / tile_pairs + 3;
  EXPECT_EQ(cu::tile_of(0, tiles, 0, false), 0u);
  EXPECT_GT(cu::tile_of(0, tiles, 0, true) * tile_pairs * 2, std::size_t{1} << 32)
      << "word indices need more than 32 bits";
  for (const bool down : {false, true}) {
    std::vector<bool> seen(tiles, false);
    for (std::size_t block = 0; block < tiles; ++block) {
      const std::size_t tile = cu::tile_of(block, tiles, 77, down);
      ASSERT_FALSE(seen[tile]);
      seen[tile] = true;
    }
  }
  for (std::uint64_t turn = 0; turn < 2000; ++turn) {
    const std::size_t from = cu::rotation_of(turn, tiles, multiprocessors),
                      to = cu::rotation_of(turn + 1, tiles, multiprocessors);
    const std::size_t moved = (to + tiles - from) % tiles;
    EXPECT_NE(moved % multiprocessors, 0u) << "blocks spread one by one";
    EXPECT_GE(std::min(moved, tiles - moved), 8u) << "blocks placed eight at a time";
  }
  for (const std::size_t few : {1, 2, 3, 100})
    for (std::uint64_t turn = 0; turn < 300; ++turn)
      EXPECT_LT(cu::rotation_of(turn, few, multiprocessors), few);
}

}  // namespace
}  // namespace assay::test
