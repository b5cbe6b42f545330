// SPDX-License-Identifier: Apache-2.0
// What programs ask of the emulated GPU: counts, which tests hold in place of times, and one word that its L2
// cache may hold wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "emulation/grid.hpp"

namespace emulation {

struct Counts {
  std::uint64_t launches = 0;  ///< of kernels
  std::uint64_t waits = 0;     ///< of the host, for what was queued; it spins
  std::uint64_t sleeps = 0;    ///< the same by events for which it sleeps
  std::uint64_t atomics = 0;   ///< on device memory
  std::uint64_t graphs = 0;    ///< instantiated and not destroyed
  std::uint64_t copied = 0;    ///< bytes, without kernels (cudaMemcpy)
  /// By accesses that say how they are to be cached (__ldcs, __stcs, ...), in bytes.
  std::uint64_t loaded = 0, stored = 0;
  /// Of these, accesses of a warp to neighbouring words that begin within a line: one line more than needed.
  std::uint64_t straddling = 0;
};

inline constexpr std::uintptr_t line_bytes = 128;

/// Since the program began. Kernels run by turns, so no access needs a lock.
Counts& counts() noexcept;

/// The L2 cache holds `value` in place of a word of device memory, until four times its size was read by
/// loads that stay in it.
void hold_in_cache(const void* word, std::uint64_t value);
extern const void* held_word;
/// A load of `bytes` from `p` came to `value`: changes it to what the cache holds. `stays`: not evicted
/// first.
void load_from_cache(const void* p, void* value, std::size_t bytes, bool stays);
/// Counts if `p` is device memory, and not that of a block.
void count_atomic(const void* p) noexcept;

template <typename T>
void check_access(const T* p) {
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  if (address % alignof(T) != 0) {
    std::fprintf(stderr, "emulation: %zu bytes at %p: a GPU stops at accesses that are not aligned\n",
                 sizeof(T), static_cast<const void*>(p));
    std::abort();
  }
  if (self().lane == 0 && sizeof(T) * warp_size >= line_bytes && address % line_bytes != 0)
    ++counts().straddling;
}

template <typename T>
T load(const T* p, bool stays) {
  check_access(p);
  counts().loaded += sizeof(T);
  T value = *p;
  if (held_word != nullptr) load_from_cache(p, &value, sizeof(T), stays);
  return value;
}

template <typename T>
void store(T* p, const T& value) {
  check_access(p);
  counts().stored += sizeof(T);
  *p = value;
}

}  // namespace emulation
