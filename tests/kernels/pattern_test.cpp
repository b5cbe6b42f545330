// SPDX-License-Identifier: Apache-2.0
#include "kernels/pattern.hpp"

#include <algorithm>
#include <set>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "fresh.hpp"

namespace assay {
namespace {

using namespace kernels;

/// Memory with 64-byte aligned start plus `shift` words, and guards around.
struct Region {
  Region(std::size_t words, std::size_t shift) : storage(words + shift + 32, guard), count(words) {
    const std::size_t past = reinterpret_cast<std::uintptr_t>(storage.data()) / 8 % 8;
    words_at = (8 - past) % 8 + 8 + shift;
  }
  std::uint64_t* words() { return storage.data() + words_at; }
  bool guards_intact() const {
    for (std::size_t i = 0; i < storage.size(); ++i)
      if ((i < words_at || i >= words_at + count) && storage[i] != guard) return false;
    return true;
  }
  static constexpr std::uint64_t guard = 0x5ca1ab1e0ddba11ULL;
  std::vector<std::uint64_t> storage;
  std::size_t count, words_at = 0;
};

/// One sweep over the region, its words cut into `threads` parts worked on one after the other.
void run(const Sweep& s, Region& region, int threads, ErrorLog& log) {
  const std::size_t half = region.count / 2, n = s.move ? half : region.count;
  for (int t = 0; t < threads; ++t) {
    const auto part = [&](int i) {
      return n * static_cast<std::size_t>(i) / static_cast<std::size_t>(threads);
    };
    host::sweep(s, region.words(), part(t), part(t + 1), half, t, log);
  }
}

/// What a sweep must do, word by word.
void run_naively(const Sweep& s, std::vector<std::uint64_t>& model) {
  const std::size_t half = model.size() / 2;
  for (std::size_t i = 0; i < half && s.move; ++i) model[half + i] = model[i];
  for (std::size_t i = 0; i < model.size() && s.write; ++i) model[i] = data_word(s.next, i);
}

class Patterns : public test::LinkRetest {
 protected:
  std::vector<std::size_t> sizes() { return {1, 2, 7, 63, 640, 641, 5000 + below(3000)}; }
};

TEST_F(Patterns, FinalWordsMatchTheClosedForm) {
  for (const std::string& name : pattern_names()) {
    const Pattern pattern = make_pattern(name, bits(), 0);
    for (const std::size_t n : sizes()) {
      SCOPED_TRACE(name + ", " + std::to_string(n) + " words");
      Region region(n, below(9));
      std::vector<std::uint64_t> model(n, Region::guard);
      ErrorLog log;
      for (const Sweep& s : pattern.sweeps) {
        run(s, region, static_cast<int>(1 + below(3)), log);
        run_naively(s, model);
        ASSERT_TRUE(std::equal(model.begin(), model.end(), region.words()));
      }
      EXPECT_EQ(log.count(), 0u);
      EXPECT_TRUE(region.guards_intact());
    }
  }
}

TEST_F(Patterns, FindOneWrongBitAtFirstMiddleAndLastWord) {
  for (const std::string& name : pattern_names()) {
    const Pattern pattern = make_pattern(name, bits(), 0);
    const std::size_t n = 3000 + below(1000);
    // Every verifying sweep must see it; of the long patterns a few stand for all.
    const std::size_t every = std::max<std::size_t>(1, pattern.sweeps.size() / 6);
    for (std::size_t hit = 1; hit < pattern.sweeps.size(); hit += pattern.sweeps[hit].verify ? every : 1) {
      if (!pattern.sweeps[hit].verify) continue;
      for (const std::size_t at : {std::size_t{0}, n / 2, n - 1}) {
        SCOPED_TRACE(name + ", sweep " + std::to_string(hit) + ", word " + std::to_string(at) + " of " +
                     std::to_string(n));
        Region region(n, below(9));
        ErrorLog log;
        const std::uint64_t flip = std::uint64_t{1} << below(64);
        std::uint64_t good = 0;
        for (std::size_t i = 0; i < pattern.sweeps.size(); ++i) {
          if (i == hit) {
            good = region.words()[at];
            region.words()[at] ^= flip;
          }
          run(pattern.sweeps[i], region, 2, log);
          if (i == hit) break;
        }
        ASSERT_EQ(log.count(), 1u);
        const ErrorRecord record = log.records().at(0);
        EXPECT_EQ(record.index, at);
        EXPECT_EQ(record.expected, good);
        EXPECT_EQ(record.actual, good ^ flip);
        EXPECT_EQ(record.reread, good ^ flip);
        EXPECT_EQ(record.thread, at < n / 2 ? 0 : 1);
      }
    }
  }
}

TEST_F(Patterns, CountsAreExactBeyondTheRecords) {
  for (const Background kind : {Background::solid, Background::random, Background::modulo}) {
    Sweep write_it, check;
    write_it.write = check.verify = true;
    write_it.next = check.expected = {kind, bits(), 23, false};
    Region region(20'011, 3);
    ErrorLog log(100);
    run(write_it, region, 1, log);
    std::set<std::size_t> bad;
    for (int i = 0; i < 5000; ++i) bad.insert(below(region.count));
    for (const std::size_t b : bad) region.words()[b] = ~region.words()[b];
    const auto part = [&](int i) { return region.count * static_cast<std::size_t>(i) / 3; };
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] { host::sweep(check, region.words(), part(t), part(t + 1), 0, t, log); });
    }
    for (auto& t : threads) t.join();
    EXPECT_EQ(log.count(), bad.size());
    std::set<std::size_t> named;
    for (const ErrorRecord& r : log.records()) named.insert(r.index);
    EXPECT_EQ(named.size(), 100u) << "records must name different words";
    for (const std::size_t w : named) EXPECT_TRUE(bad.count(w));
  }
}

TEST_F(Patterns, AVerifyingWriteRepairsWhatItReports) {
  Sweep s;
  s.verify = s.write = true;
  s.expected = {Background::solid, 0, 0, false};
  s.next = {Background::own_address, bits(), 0, true};
  Region region(1000, 0);
  std::fill_n(region.words(), region.count, 0);
  region.words()[500] = 4;
  ErrorLog log;
  run(s, region, 1, log);
  EXPECT_EQ(log.count(), 1u);
  for (std::size_t i = 0; i < region.count; ++i) ASSERT_EQ(region.words()[i], data_word(s.next, i));
}

TEST_F(Patterns, EveryBackgroundMatchesItsDefinitionOnEveryPath) {
  for (const bool inverted : {false, true}) {
    std::vector<Data> all = {{Background::own_address, bits(), 0, inverted},
                             {Background::random, bits(), 0, inverted},
                             {Background::solid, 0, 0, inverted},
                             {Background::checkerboard, 0, 0, inverted}};
    for (const std::uint32_t v : {0u, 1u, 31u, 63u}) all.push_back({Background::walking, 0, v, inverted});
    for (const std::uint32_t v : {1u, 2u, 6u, 7u, 8u, 9u, 10u, 13u, 15u, 16u, 20u})
      all.push_back({Background::stripe, 0, v, inverted});
    for (const std::uint32_t v : {1u, 2u, 20u, 23u, 61u, 64u, 511u, 999u})
      all.push_back({Background::modulo, bits(), v, inverted});
    all.push_back({Background::powers, bits(), 0, inverted});
    for (const std::uint32_t v : {0u, 2u, 3u, 7u, 8u, 9u, 12u, 63u})
      all.push_back({Background::toggle, bits(), v, inverted, bits()});
    for (const Data& data : all) {
      SCOPED_TRACE("kind " + std::to_string(static_cast<int>(data.kind)) + " variant " +
                   std::to_string(data.variant));
      const std::size_t begin = below(100), n = 9000;
      Region region(n, below(9));
      Sweep s;
      s.write = true;
      s.next = data;
      s.down = below(2) == 1;
      ErrorLog log;
      host::sweep(s, region.words(), begin, n, 0, 0, log);
      for (std::size_t i = 0; i < n; ++i)
        ASSERT_EQ(region.words()[i], i < begin ? Region::guard : data_word(data, i)) << i;
      s.verify = true;
      s.expected = data;
      s.next = all[below(all.size())];
      host::sweep(s, region.words(), begin, n, 0, 0, log);
      ASSERT_EQ(log.count(), 0u);
      for (std::size_t i = begin; i < n; ++i) ASSERT_EQ(region.words()[i], data_word(s.next, i)) << i;
    }
  }
}

TEST(PatternData, HasTheWordsItSays) {
  EXPECT_EQ(data_word({Background::stripe, 0, 1, false}, 5), 0xaaaaaaaaaaaaaaaaULL);
  EXPECT_EQ(data_word({Background::stripe, 0, 2, false}, 5), 0xccccccccccccccccULL);
  EXPECT_EQ(data_word({Background::stripe, 0, 6, false}, 0), 0xffffffff00000000ULL);
  EXPECT_EQ(data_word({Background::stripe, 0, 7, false}, 0), 0u);
  EXPECT_EQ(data_word({Background::stripe, 0, 7, false}, 1), ~0ULL);
  EXPECT_EQ(data_word({Background::walking, 0, 3, false}, 0), 8u);
  EXPECT_EQ(data_word({Background::walking, 0, 63, true}, 1), ~1ULL);
  EXPECT_EQ(data_word({Background::checkerboard, 0, 0, true}, 0), 0x5555555555555555ULL);
  EXPECT_EQ(data_word({Background::modulo, 3, 20, false}, 43), ~0ULL);
  EXPECT_EQ(data_word({Background::modulo, 3, 20, false}, 44), 0u);
  // Indices beyond 2^32 words, where a truncated index would repeat.
  for (const Background kind : {Background::own_address, Background::random})
    EXPECT_NE(data_word({kind, 1, 0, false}, 5), data_word({kind, 1, 0, false}, (std::size_t{1} << 32) + 5));
}

TEST(PatternData, AddressHashIsABijectionThatSetsEachBitHalfTheTime) {
  std::set<std::uint64_t> seen;
  int ones[64] = {};
  for (std::size_t i = 0; i < 1 << 16; ++i) {
    const std::uint64_t w = address_hash(42, i * 4097);
    seen.insert(w);
    for (int b = 0; b < 64; ++b) ones[b] += static_cast<int>(w >> b & 1);
  }
  EXPECT_EQ(seen.size(), std::size_t{1} << 16);
  for (const int n : ones) EXPECT_NEAR(n, 1 << 15, 1200);
}

TEST(PatternCatalogue, TrafficIsAsDocumented) {
  const std::pair<const char*, double> expected[] = {{"own-address", 4},
                                                     {"moving-inversions", 6},
                                                     {"walking-ones", 128},
                                                     {"walking-zeros", 128},
                                                     {"checkerboard", 4},
                                                     {"march-c", 10},
                                                     {"random", 4},
                                                     {"modulo-20", 80},
                                                     {"block-move", 6},
                                                     {"retention", 4},
                                                     {"address-bits", 6},
                                                     {"walking-8", 32},
                                                     {"walking-32", 128},
                                                     {"five-a", 4},
                                                     {"row-stripe", 4},
                                                     {"column-stripe", 4},
                                                     {"switching-noise", 20},
                                                     {"line-codes", 16},
                                                     {"march-c-stripes", 80},
                                                     {"march-ss", 22},
                                                     {"march-sr", 14},
                                                     {"block-move-engine", 6},
                                                     {"hold", 17}};
  EXPECT_EQ(pattern_names().size(), std::size(expected));
  for (const auto& [name, bytes] : expected) EXPECT_EQ(make_pattern(name, 1).bytes_per_byte(), bytes) << name;
  double pause_s = 0;
  for (const Sweep& s : make_pattern("retention", 1, 7.0).sweeps) pause_s += s.pause_s;
  EXPECT_EQ(pause_s, 14.0);
}

TEST(PatternCatalogue, AnUnknownNameIsAUsageError) {
  try {
    make_pattern("nosuch", 1);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::usage);
    EXPECT_NE(std::string(e.what()).find("'nosuch'"), std::string::npos);
  }
}

TEST_F(Patterns, ChunksOfARegionHoldItsWords) {
  for (const char* name :
       {"own-address", "address-bits", "march-c-stripes", "switching-noise", "modulo-20"}) {
    const Pattern pattern = make_pattern(name, bits(), 0);
    const std::size_t n = 9000 + below(1000);
    Region whole(n, 0), chunked(n, 0);
    ErrorLog log;
    for (const Sweep& s : pattern.sweeps) {
      run(s, whole, 1, log);
      for (std::size_t first = 0; first < n; first += 4096) {
        Sweep part = s;
        part.first = first;
        host::sweep(part, chunked.words() + first, 0, std::min<std::size_t>(4096, n - first), 0, 0, log);
      }
      ASSERT_TRUE(std::equal(whole.words(), whole.words() + n, chunked.words())) << name;
    }
    EXPECT_EQ(log.count(), 0u) << name;
  }
}

TEST_F(Patterns, WrongBitsAreCountedByDirection) {
  Sweep check;
  check.verify = true;
  Region region(2000, 0);
  std::fill_n(region.words(), region.count, 0);
  ErrorLog log(3);
  for (std::size_t i = 0; i < 20; ++i) region.words()[i * 70] = 0x21;
  run(check, region, 2, log);
  EXPECT_EQ(log.bits()[0], 20u);
  EXPECT_EQ(log.bits()[5], 20u);
  std::uint64_t all = 0;
  for (const std::uint64_t n : log.bits()) all += n;
  EXPECT_EQ(all, 40u);
}

TEST(PatternTypes, CountsAndIndicesHave64Bits) {
  static_assert(sizeof(ErrorRecord::index) == 8);
  static_assert(sizeof(std::size_t) == 8);
  ErrorLog log(1);
  log.add_count(std::uint64_t{1} << 33);
  EXPECT_EQ(log.count(), std::uint64_t{1} << 33);
}

}  // namespace
}  // namespace assay
