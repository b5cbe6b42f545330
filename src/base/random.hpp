// SPDX-License-Identifier: Apache-2.0
// Random numbers are functions of counters, never of call order: the same (seed, stream, index) gives the
// same value on every rank, device and restart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace assay {

/// A 64-bit finaliser (bijective, all bits avalanche; the constants are those of SplitMix64, Steele et al.,
/// OOPSLA'14). Vectorises; used for payload words and digests, where Philox would be slower than the copy
/// under test.
constexpr std::uint64_t mix64(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// Order-dependent combination of two 64-bit values into one (odd multiplier of degski's 64-bit mixer).
constexpr std::uint64_t mix64(std::uint64_t a, std::uint64_t b) noexcept {
  return mix64(mix64(a) ^ (b * 0xd6e8feb86659fd93ULL));
}

/// FNV-1a of a text: stable across machines and versions, for names, plan hashes and case keys (not
/// cryptographic).
constexpr std::uint64_t hash_text(std::string_view text, std::uint64_t h = 0xcbf29ce484222325ULL) noexcept {
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return h;
}

/// A counter-based stream (Random123 Philox4x32-10) keyed by (seed, stream name).
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::string_view name) noexcept : key_(mix64(seed, hash_text(name))) {}
  explicit RandomStream(std::uint64_t key) noexcept : key_(key) {}

  std::uint64_t key() const noexcept { return key_; }
  /// A stream of its own below this one.
  RandomStream child(std::string_view name) const noexcept {
    return RandomStream(mix64(key_, hash_text(name)));
  }

  /// 64 random bits at `index`.
  std::uint64_t bits(std::uint64_t index) const noexcept;
  /// Uniform in [0, 1) at `index`.
  double uniform(std::uint64_t index) const noexcept {
    return static_cast<double>(bits(index) >> 11) * 0x1.0p-53;
  }
  /// Uniform integer in [0, n) at `index`; n > 0.
  std::uint64_t below(std::uint64_t index, std::uint64_t n) const noexcept;
  /// A permutation of 0..n-1 (Fisher-Yates on this stream).
  std::vector<std::size_t> permutation(std::size_t n) const;

 private:
  std::uint64_t key_;
};

/// The random group of every node in a draw of whole groups of `size` nodes; -1: left over, which over
/// several draws each node is in turn.
std::vector<int> random_groups(std::size_t nodes, std::size_t size, const RandomStream& random, int draw);

}  // namespace assay
