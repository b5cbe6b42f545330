// SPDX-License-Identifier: Apache-2.0
#include "suites/storage/word.hpp"

#include <array>
#include <bit>

#include "base/random.hpp"

// Words are made and compared at the speed of the widest registers that a CPU has: 64-bit products are vector
// instructions only there.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define ASSAY_WIDEST __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define ASSAY_WIDEST
#endif

namespace assay::storage {
namespace {

constexpr unsigned word_bits = 36, generation_bits = 12;
constexpr std::uint64_t low(unsigned bits) { return (std::uint64_t{1} << bits) - 1; }
constexpr int most_flipped = 8;

/// x of x ^ (x >> shift).
constexpr std::uint64_t unshift(std::uint64_t x, unsigned shift) {
  std::uint64_t out = x;
  for (unsigned known = shift; known < 64; known += shift) out = x ^ (out >> shift);
  return out;
}

/// The inverse of an odd number modulo 2^64, by Newton's iteration.
constexpr std::uint64_t inverse(std::uint64_t odd) {
  std::uint64_t x = odd;
  for (int i = 0; i < 6; ++i) x *= 2 - odd * x;
  return x;
}

/// x of mix64(x).
constexpr std::uint64_t unmix64(std::uint64_t x) {
  x = unshift(x, 31) * inverse(0x94d049bb133111ebULL);
  x = unshift(x, 27) * inverse(0xbf58476d1ce4e5b9ULL);
  return unshift(x, 30) - 0x9e3779b97f4a7c15ULL;
}
static_assert(unmix64(mix64(0x0123456789abcdefULL)) == 0x0123456789abcdefULL);

constexpr std::uint64_t pack(const WordAddress& p) {
  return p.file << (generation_bits + word_bits) | (p.generation & low(generation_bits)) << word_bits |
         (p.word & low(word_bits));
}

ASSAY_WIDEST void fill_words(std::uint64_t key, std::uint64_t first, std::uint64_t* data, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) data[i] = mix64((first + i) ^ key);
}

/// Bits in which any word is not what it should be.
ASSAY_WIDEST std::uint64_t differing_bits(std::uint64_t key, std::uint64_t first, const std::uint64_t* data,
                                          std::size_t count) {
  std::uint64_t out = 0;
  for (std::size_t i = 0; i < count; ++i) out |= data[i] ^ mix64((first + i) ^ key);
  return out;
}

Damage kind_of(const Known& known, const WordAddress& right, std::uint64_t expected, std::uint64_t actual,
               std::optional<WordAddress>& belongs) {
  if (std::popcount(expected ^ actual) <= most_flipped) return Damage::flip;
  const WordAddress address = address_of(known.key, actual);
  if (!known.holds(address)) return Damage::foreign;
  belongs = address;
  const bool here = address.file == right.file && address.word == right.word;
  return here && address.generation < right.generation ? Damage::stale : Damage::misdirect;
}

}  // namespace

std::uint64_t word_of(std::uint64_t key, const WordAddress& address) noexcept {
  return mix64(pack(address) ^ key);
}

WordAddress address_of(std::uint64_t key, std::uint64_t word) noexcept {
  const std::uint64_t packed = unmix64(word) ^ key;
  return {packed >> (generation_bits + word_bits), packed >> word_bits & low(generation_bits),
          packed & low(word_bits)};
}

void fill(std::uint64_t key, WordAddress address, std::span<std::uint64_t> data) noexcept {
  fill_words(key, pack(address), data.data(), data.size());
}

const char* to_string(Damage damage) noexcept {
  switch (damage) {
    case Damage::flip: return "flipped";
    case Damage::stale: return "stale";
    case Damage::torn: return "torn";
    case Damage::misdirect: return "misdirected";
    case Damage::short_data: return "short";
    case Damage::foreign: break;
  }
  return "foreign";
}

std::vector<Finding> check(const Known& known, const WordAddress& address,
                           std::span<const std::uint64_t> data, std::uint64_t expected_words) {
  const std::uint64_t first = pack(address);
  const std::uint64_t differences = differing_bits(known.key, first, data.data(), data.size());
  std::array<Finding, 6> found{};
  for (std::size_t i = 0; differences != 0 && i < data.size(); ++i) {
    const WordAddress right{address.file, address.generation, address.word + i};
    const std::uint64_t expected = word_of(known.key, right);
    if (data[i] == expected) continue;
    std::optional<WordAddress> belongs;
    const Damage damage = kind_of(known, right, expected, data[i], belongs);
    Finding& finding = found[static_cast<std::size_t>(damage)];
    if (finding.words++ == 0)
      finding = {damage, 1, right.word * sizeof(std::uint64_t), expected, data[i], belongs};
  }
  Finding& stale = found[static_cast<std::size_t>(Damage::stale)];
  if (stale.words > 0 && stale.words < data.size()) stale.damage = Damage::torn;
  if (data.size() < expected_words) {
    const WordAddress right{address.file, address.generation, address.word + data.size()};
    found[static_cast<std::size_t>(Damage::short_data)] = {Damage::short_data,
                                                           expected_words - data.size(),
                                                           right.word * sizeof(std::uint64_t),
                                                           word_of(known.key, right),
                                                           0,
                                                           {}};
  }
  std::vector<Finding> out;
  for (const Finding& finding : found)
    if (finding.words > 0) out.push_back(finding);
  return out;
}

bool sectors_are_right(const Known& known, const WordAddress& address,
                       std::span<const std::uint64_t> data) noexcept {
  const std::uint64_t first = pack(address);
  std::uint64_t differences = 0;
  for (std::size_t i = mix64(first ^ ~known.key) % sector_words; i < data.size(); i += sector_words)
    differences |= data[i] ^ mix64((first + i) ^ known.key);
  return differences == 0;
}

}  // namespace assay::storage
