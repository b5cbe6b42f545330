// SPDX-License-Identifier: Apache-2.0
#include "device/arena.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "base/bounds.hpp"
#include "base/cgroup.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/units.hpp"

namespace assay {

void Arena::release() noexcept {
  if (base_ != nullptr) munmap(base_, size_);
  base_ = nullptr;
  size_ = touched_ = 0;
}

void Arena::reserve(std::size_t bytes, Team& team) {
  reserve_until(bytes, std::numeric_limits<double>::infinity(), team);
}

std::size_t Arena::reserve_until(std::size_t bytes, double until_s, Team& team) {
  const auto threads = static_cast<std::size_t>(team.size());
  if (bytes > size_) map(bytes, threads);
  // Whole rounds of all threads, so that each granule is touched by its owner. Without a limit all at once.
  constexpr std::size_t least_step = std::size_t{16} << 20;
  const std::size_t round = granule_bytes * threads;
  const auto in_rounds = [&](std::size_t n) { return (n + round - 1) / round * round; };
  const std::size_t goal = std::min(size_, in_rounds(bytes));
  const std::size_t step = std::isinf(until_s) ? goal : in_rounds(least_step);
  while (touched_ < goal && (touched_ == 0 || now_s() < until_s)) {
    std::byte* const begin = base_ + touched_;
    const std::size_t length = std::min(step, goal - touched_);
    team.run([&](int thread) noexcept {
      for_share(begin, length, 1, thread, team.size(), false, [&](std::size_t from, std::size_t to) noexcept {
        for (std::size_t i = from; i < to; i += 4096)
          *const_cast<volatile std::byte*>(begin + i) = std::byte{0};
      });
    });
    touched_ += length;
  }
  return touched_;
}

void Arena::map(std::size_t bytes, std::size_t threads) {
  release();
  const std::size_t size = (bytes + granule_bytes - 1) / granule_bytes * granule_bytes;
  const std::size_t alignment = granule_bytes * threads;
  const std::size_t available = available_memory_bytes();
  if (size < bytes || size > available)
    throw Error(ErrorKind::resource, "cannot reserve " + format_bytes(bytes) +
                                         " of memory: " + format_bytes(available) + " available");
  // Mapped with room for alignment, which is given back: the arena then starts at thread 0's granule.
  void* map = mmap(nullptr, size + alignment, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) {
    const std::string why = std::strerror(errno);
    throw Error(
        ErrorKind::resource,
        "cannot reserve " + format_bytes(bytes) + " of memory: " + why +
            (free_address_space() < size + alignment ? " (limit of the address space: ulimit -v)" : ""));
  }
  auto* begin = static_cast<std::byte*>(map);
  const std::size_t past = reinterpret_cast<std::uintptr_t>(begin) % alignment;
  const std::size_t skip = past == 0 ? 0 : alignment - past;
  if (skip != 0) munmap(begin, skip);
  if (alignment != skip) munmap(begin + skip + size, alignment - skip);
  base_ = begin + skip;
  size_ = size;
  // Fewer, larger pages: less time to touch, fewer misses of the address translation. Refusal costs only
  // speed.
  madvise(base_, size_, MADV_HUGEPAGE);
}

}  // namespace assay
