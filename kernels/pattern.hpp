// SPDX-License-Identifier: Apache-2.0
// RAM test patterns as sequences of sweeps. A sweep visits words in one direction; at each it may verify the
// value that an earlier sweep left (recomputed from index and pass, never stored) and may write a new one.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace assay::kernels {

/// A data background: the value of word `index` under (kind, key, variant, inverted).
/// - own_address, random: address_hash(key, index); they differ by their keys only
/// - solid: all zeros
/// - walking: one 1 in each word, at bit (index + variant) modulo 64, so that it walks in space as well as
/// over variants
/// - checkerboard: 0xaaaa... in even words, 0x5555... in odd ones
/// - stripe: 2^(variant-1) zeros, then as many ones, and so on through all bits of the region; variant 1 to
/// 63
/// - modulo: all ones where index mod variant equals key mod variant, zeros elsewhere
/// - toggle: key, and key xor mask in the words whose index has bit `variant` set (variant 63: key
/// everywhere)
/// - powers: address_hash(key, index) in the words whose index has exactly one bit set, zeros elsewhere
enum class Background { own_address, solid, walking, checkerboard, stripe, random, modulo, toggle, powers };
struct Data {
  Background kind = Background::solid;
  std::uint64_t key = 0;  ///< seed of own_address, random, powers; offset of modulo; words of toggle
  std::uint32_t variant =
      0;  ///< walking: bit position; stripe: log2 period in bits; modulo: modulus; toggle: bit of the index
  bool inverted = false;                   ///< the complement of all this
  std::uint64_t mask = ~std::uint64_t{0};  ///< toggle: the bits that change
  bool operator==(const Data&) const = default;
};
std::uint64_t data_word(const Data& data, std::size_t index) noexcept;

/// A bijection of the index for every key, cheap enough to be recomputed at memory speed: a Weyl sequence,
/// one 32-bit multiplier and two shifts (mix64 costs twice that where there is no 64-bit vector multiply).
inline constexpr std::uint64_t address_step = 0x9e3779b97f4a7c15ULL;
inline constexpr std::uint32_t address_multiplier = 0xb5297a4dU;
constexpr std::uint64_t address_hash(std::uint64_t key, std::size_t index) noexcept {
  std::uint64_t x = key + index * address_step;
  x = (x ^ (x >> 32)) * address_multiplier;
  return x ^ (x >> 29);
}

/// Words are visited in blocks of at most 32 KiB: all of a block are verified before any of it is written.
/// The memory itself sees whole cache lines in the order of eviction, so a finer order would reach no cell.
struct Sweep {
  bool verify = false, write = false, down = false;
  Data expected, next;
  bool move = false;  ///< block move: second half = first half, `expected`/`next` unused
  bool folded =
      false;  ///< verify after a block move: word half + i, too, is expected to hold the value of index i
  double pause_s = 0;  ///< idle time before this sweep (retention); the caller waits, the sweep does not
  bool powers_only =
      false;  ///< write only the words whose index has one bit set; all others hold `next` already
  std::size_t first = 0;  ///< index of words[0] in the closed forms, where a region is swept in chunks
  bool engine = false;    ///< move by the copy engine of a device that has one
  /// Bytes of traffic per word: 8 per read and 8 per write.
  std::size_t bytes_per_word() const noexcept {
    return move ? 16u / 2u : (verify ? 8u : 0u) + (write && !powers_only ? 8u : 0u);
  }
};

/// A named pattern: its sweeps in order and the faults it finds.
struct Pattern {
  std::string name;
  std::vector<Sweep> sweeps;
  std::string fault_model;
  /// Bytes moved per byte under test, the sum over sweeps (March C- : 10).
  double bytes_per_byte() const noexcept;
};

/// By one of pattern_names(): `key` seeds it, `pause_s` is the idle time of retention. Throws Error(usage)
/// for another name.
Pattern make_pattern(const std::string& name, std::uint64_t key, double pause_s = 2.0);
const std::vector<std::string>& pattern_names();

struct ErrorRecord {
  std::uint64_t index = 0;  ///< word index
  /// What the closed form says, what was read, and what the memory holds when the line is flushed and read
  /// again: equal to `actual` for a bad write or a bad cell, to `expected` for a bad read.
  std::uint64_t expected = 0, actual = 0, reread = 0;
  std::int32_t thread = -1;
  std::int32_t sm = -1, warp = -1,
               lane = -1;  ///< of a GPU: multiprocessor, warp slot and lane that read it; -1 on the host
  bool unstable = false;   ///< of a GPU: two looks with emptied caches in between saw different values;
                           ///< `reread` is the last
  bool cached = false;     ///< of a GPU: its cache could not be emptied, so `reread` may come from there: an
                           ///< `actual` that stays does not tell a bad cell from a bad read
};

/// What is said of a record whose `cached` is set.
inline constexpr const char* cached_words =
    "; bad cell or bad read: could not be told, for lack of memory to empty the cache with";

/// Exact 64-bit count of wrong words and the first `capacity` records; safe for many threads.
class ErrorLog {
 public:
  explicit ErrorLog(std::size_t capacity = 1000) : records_(capacity) {}
  void add(const ErrorRecord& record) noexcept {
    const std::uint64_t slot = count_.fetch_add(1, std::memory_order_relaxed);
    if (slot < records_.size()) records_[slot] = record;
  }
  /// Counts wrong words for which no record is made.
  void add_count(std::uint64_t n) noexcept { count_.fetch_add(n, std::memory_order_relaxed); }
  /// No further record would be kept.
  bool full() const noexcept { return count_.load(std::memory_order_relaxed) >= records_.size(); }
  std::uint64_t count() const noexcept { return count_.load(); }
  /// Counts the wrong bits of a word, whether it gets a record or not.
  void add_bits(std::uint64_t expected, std::uint64_t actual) noexcept {
    for (std::uint64_t wrong = expected ^ actual; wrong != 0; wrong &= wrong - 1) {
      const auto bit = static_cast<std::size_t>(std::countr_zero(wrong));
      add_bits(bit, (actual >> bit & 1) != 0, 1);
    }
  }
  /// Counts `n` words that hold a 1 (`one`) or a 0 where the other was expected.
  void add_bits(std::size_t bit, bool one, std::uint64_t n) noexcept {
    bits_[(one ? 0 : 64) + bit].fetch_add(n, std::memory_order_relaxed);
  }
  /// [0, 64): words in which this bit was 1 instead of 0; [64, 128): 0 instead of 1.
  std::array<std::uint64_t, 128> bits() const noexcept {
    std::array<std::uint64_t, 128> all;
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = bits_[i].load();
    return all;
  }
  /// To be called when no thread adds any more.
  std::vector<ErrorRecord> records() const {
    const auto n = static_cast<std::ptrdiff_t>(count() < records_.size() ? count() : records_.size());
    return {records_.begin(), records_.begin() + n};
  }

 private:
  std::atomic<std::uint64_t> count_{0};
  std::array<std::atomic<std::uint64_t>, 128> bits_{};
  std::vector<ErrorRecord> records_;
};

namespace host {
/// One thread's share: words[begin, end) of the region that starts at words[0], `words` 8-byte aligned. For a
/// move, begin/end count words of the first half; `half` is its length (for a folded verify too; an odd last
/// word stays itself). A block whose difference vanished when it was looked at word by word counts one error
/// at its first word.
void sweep(const Sweep& sweep, std::uint64_t* words, std::size_t begin, std::size_t end, std::size_t half,
           int thread, ErrorLog& log) noexcept;
}  // namespace host

/// What a sweep on a GPU found, in device memory: this, and behind it `capacity` records.
struct DeviceErrors {
  unsigned long long count, kept,
      capacity;  ///< wrong words, exactly; records (may exceed the capacity); room for records
  unsigned long long bits[2][64];  ///< words with this bit 1 instead of 0, and 0 instead of 1
};
struct DeviceRecord {
  std::uint64_t index, expected, actual, reread[2];
  std::uint64_t next;  ///< what the sweep is to leave there
  std::int32_t sm, warp, lane;
  std::uint32_t waits;  ///< 1: the word holds what was read until look_again has seen it
};

/// What a block of a GPU visits, at most.
inline constexpr std::size_t device_tile_bytes = std::size_t{32} << 10;

namespace cuda {
std::size_t errors_bytes(std::size_t capacity);
void clear_errors(DeviceErrors* errors, std::size_t capacity, void* stream);

/// Queues a sweep over words[0, count), 8-byte aligned device memory, and adds what it finds to `errors` (may
/// be null if the sweep does not verify). A block of a GPU verifies its tile before it writes it; blocks that
/// run at the same time keep no order among them. `turn` is to grow by one from sweep to sweep over a region:
/// other multiprocessors read what one wrote. Words with a record are overwritten by look_again, not before.
void sweep(const Sweep& sweep, std::uint64_t* words, std::size_t count, std::uint64_t turn,
           DeviceErrors* errors, void* stream);

/// Reads the words that have records again, by loads that pass by the L1 cache, as look 0 and then as look 1,
/// which also writes what the sweep was to leave. The caller empties the L2 cache before each.
void look_again(std::uint64_t* words, DeviceErrors* errors, int look, void* stream);
}  // namespace cuda
}  // namespace assay::kernels
