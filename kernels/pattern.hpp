// SPDX-License-Identifier: Apache-2.0
// RAM test patterns as sequences of sweeps. A sweep visits words in one direction; at each it may verify the value that
// an earlier sweep left (recomputed from index and pass, never stored) and may write a new one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace assay::kernels {

/// A data background: the value of word `index` under (kind, key, variant, inverted).
enum class Background { own_address, solid, walking, checkerboard, stripe, random, modulo };
struct Data {
  Background kind = Background::solid;
  std::uint64_t key = 0;      ///< seed of own_address and random; offset of modulo
  std::uint32_t variant = 0;  ///< walking: bit position; stripe: log2 period in bits; modulo: modulus
  bool inverted = false;
  bool operator==(const Data&) const = default;
};
std::uint64_t data_word(const Data& data, std::size_t index) noexcept;

struct Sweep {
  bool verify = false, write = false, down = false;
  Data expected, next;
  bool move = false;  ///< block move: second half = first half, `expected`/`next` unused
  double pause_s = 0; ///< idle time before this sweep (retention)
  /// Bytes of traffic per word: 8 per read and 8 per write.
  std::size_t bytes_per_word() const noexcept { return move ? 16u / 2u : (verify ? 8u : 0u) + (write ? 8u : 0u); }
};

/// A named pattern: its sweeps in order and the faults it finds.
struct Pattern {
  std::string name;
  std::vector<Sweep> sweeps;
  std::string fault_model;
  /// Bytes moved per byte under test, the sum over sweeps (March C- : 10).
  double bytes_per_byte() const noexcept;
};

/// own-address, moving-inversions, walking-ones, walking-zeros, checkerboard, march-c, random, modulo-20, block-move,
/// retention; `key` seeds them, `pause_s` is the idle time of retention. Throws Error(usage) for another name.
Pattern make_pattern(const std::string& name, std::uint64_t key, double pause_s = 2.0);
const std::vector<std::string>& pattern_names();

struct ErrorRecord {
  std::uint64_t index = 0;  ///< word index
  std::uint64_t expected = 0, actual = 0, reread = 0;
  std::int32_t thread = -1;
};

/// Exact 64-bit count of wrong words and the first `capacity` records; safe for many threads.
class ErrorLog {
 public:
  explicit ErrorLog(std::size_t capacity = 1000) : records_(capacity) {}
  void add(const ErrorRecord& record) noexcept {
    const std::uint64_t slot = count_.fetch_add(1, std::memory_order_relaxed);
    if (slot < records_.size()) records_[slot] = record;
  }
  std::uint64_t count() const noexcept { return count_.load(); }
  std::vector<ErrorRecord> records() const {
    const auto n = static_cast<std::ptrdiff_t>(count() < records_.size() ? count() : records_.size());
    return {records_.begin(), records_.begin() + n};
  }

 private:
  std::atomic<std::uint64_t> count_{0};
  std::vector<ErrorRecord> records_;
};

namespace host {
/// One thread's share: words[begin, end) of the region that starts at words[0]; for a move, begin/end count words of the
/// first half and `half` is its length.
void sweep(const Sweep& sweep, std::uint64_t* words, std::size_t begin, std::size_t end, std::size_t half, int thread,
           ErrorLog& log) noexcept;
}  // namespace host
}  // namespace assay::kernels
