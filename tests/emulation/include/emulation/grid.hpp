// SPDX-License-Identifier: Apache-2.0
// Runs CUDA kernels on the host, so that what they compute can be tested without a GPU. Says nothing about
// speed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};

namespace emulation {

inline constexpr unsigned warp_size = 32;

/// What a thread of the running block knows about itself.
struct Thread {
  uint3 thread{}, block{};
  dim3 block_size, grid_size;
  unsigned lane = 0, warp = 0, sm = 0;
  void* shared = nullptr;  ///< dynamic shared memory of the block
};

/// Of the kernel that runs; undefined outside.
const Thread& self() noexcept;

/// Runs `body` once per thread of the grid, block after block, the threads of a block by turns: each runs
/// until it waits for others. Ends the program with a message when threads wait for ever (a barrier that some
/// do not reach), which on a GPU would hang. Dynamic shared memory starts as garbage.
void run_grid(dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& body);

/// __syncthreads: waits for all threads of the block that have not ended.
void sync_block();
/// Waits for the lanes of `mask`; every lane gives `bytes` (at most 64) and sees what all others gave.
const std::byte (*exchange(unsigned mask, const void* mine, std::size_t bytes))[64];

template <typename T>
T from_lane(unsigned mask, const T& mine, unsigned lane) {
  static_assert(sizeof(T) <= 64 && std::is_trivially_copyable_v<T>);
  const std::byte(*all)[64] = exchange(mask, &mine, sizeof(T));
  T value;
  std::memcpy(&value, all[lane % warp_size], sizeof(T));
  return value;
}

}  // namespace emulation
