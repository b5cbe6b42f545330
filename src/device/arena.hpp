// SPDX-License-Identifier: Apache-2.0
// The one large allocation of a host device, and how its memory belongs to threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "device/team.hpp"

namespace assay {

/// Memory belongs to threads in granules of 2 MiB (one huge page), round robin: granule g of the arena is
/// first touched, and later read and written, by thread g mod T. So each page lies in the NUMA domain of the
/// thread that works on it, whichever part of the arena a case uses.
class Arena {
 public:
  static constexpr std::size_t granule_bytes = std::size_t{2} << 20;

  Arena() = default;
  ~Arena() { release(); }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// At least `bytes`, touched by the team. What fits already is kept with its content. Throws
  /// Error(resource).
  void reserve(std::size_t bytes, Team& team);
  /// The same, but no more is touched from `until_s` of now_s() on: how many bytes are. `reserve` touches the
  /// rest.
  std::size_t reserve_until(std::size_t bytes, double until_s, Team& team);
  std::span<std::byte> bytes() const noexcept { return {base_, touched_}; }  ///< those touched

 private:
  void map(std::size_t bytes, std::size_t threads);
  void release() noexcept;

  std::byte* base_ = nullptr;
  std::size_t size_ = 0, touched_ = 0;
};

/// Calls f(begin, end) for the element ranges of one thread's share of an array of `count` elements at
/// `data`: the granules it owns, in ascending (or, `down`, descending) order. Granules that do not make a
/// full round of all threads are cut into equal parts instead, so that no thread gets more than 64 bytes
/// beyond its share.
template <typename F>
void for_share(const void* data, std::size_t count, std::size_t element_bytes, int thread, int threads,
               bool down, F&& f) {
  const std::size_t per_granule = Arena::granule_bytes / element_bytes, line = 64 / element_bytes;
  const auto t = static_cast<std::size_t>(thread), n = static_cast<std::size_t>(threads);
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  const std::size_t past = (address % Arena::granule_bytes) / element_bytes;
  const std::size_t head = std::min(count, (per_granule - past) % per_granule);
  const std::size_t rounds = (count - head) / (per_granule * n);
  const std::size_t rest = head + rounds * per_granule * n;
  const auto part = [&](std::size_t begin, std::size_t end) {
    const std::size_t share = ((end - begin + n - 1) / n + line - 1) / line * line;
    const std::size_t from = std::min(end, begin + t * share), to = std::min(end, from + share);
    if (from < to) f(from, to);
  };
  // The first whole granule belongs to the thread that its place in memory says; the arena starts at a
  // multiple of T granules, so the address decides alone.
  const std::size_t first_owner = n == 0 ? 0 : ((address + head * element_bytes) / Arena::granule_bytes) % n;
  const std::size_t mine = head + ((t + n - first_owner) % n) * per_granule;
  if (!down) part(0, head);
  if (down) part(rest, count);
  for (std::size_t r = 0; r < rounds; ++r) {
    const std::size_t begin = mine + (down ? rounds - 1 - r : r) * per_granule * n;
    f(begin, begin + per_granule);
  }
  if (!down) part(rest, count);
  if (down) part(0, head);
}

}  // namespace assay
