// SPDX-License-Identifier: Apache-2.0
// Latency by dependent loads: one node per cache line, linked into one random cycle over the whole buffer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/random.hpp"

namespace assay::kernels {

inline constexpr std::size_t chase_node_bytes = 64;

struct ChaseEnd {
  std::size_t node = 0;             ///< where the walk stands; the next walk may start there
  bool intact = true;               ///< every node met was one that chase_build made with this key
  std::size_t steps = 0;            ///< links followed
  std::uint64_t words[2] = {0, 0};  ///< of the node that is not intact, as the walk read them
};

/// A random permutation of [0, nodes) that any thread can evaluate: four Feistel rounds (Luby and Rackoff
/// 1988) with mix64 over the next even power of two, repeated until the value falls below `nodes` (cycle
/// walking, Black and Rogaway 2002), fewer than four times on average. Chaining its values makes one cycle of
/// all nodes.
struct ChaseOrder {
  std::uint64_t nodes = 0, key = 0;
  unsigned half_bits = 1;  ///< 2 * half_bits hold every number below `nodes`

  constexpr std::uint64_t node_at(std::uint64_t place) const noexcept {
    const std::uint64_t mask = (std::uint64_t{1} << half_bits) - 1;
    std::uint64_t x = place;
    do {
      std::uint64_t left = x >> half_bits, right = x & mask;
      for (std::uint64_t round = 0; round < 4; ++round) {
        const std::uint64_t other = left ^ (mix64(key + 4 * right + round) & mask);
        left = right;
        right = other;
      }
      x = left << half_bits | right;
    } while (x >= nodes);
    return x;
  }
};
constexpr ChaseOrder chase_order(std::uint64_t nodes, std::uint64_t key) noexcept {
  ChaseOrder order{nodes, mix64(key), 1};
  while (order.half_bits < 32 && (std::uint64_t{1} << (2 * order.half_bits)) < nodes) ++order.half_bits;
  return order;
}

namespace host {
/// Links the bytes / 64 nodes of `memory` (8-byte aligned) into one cycle, a random cyclic permutation
/// (Sattolo 1986) that depends on `key` alone. Fewer than two nodes make a cycle of one.
void chase_build(void* memory, std::size_t bytes, std::uint64_t key) noexcept;

/// Follows `steps` links from node `start`. A walk that meets a foreign node ends there with `intact` false.
ChaseEnd chase_walk(const void* memory, std::size_t bytes, std::uint64_t key, std::size_t start,
                    std::size_t steps) noexcept;
}  // namespace host

namespace cuda {
/// The same nodes in another order (ChaseOrder), which many threads make at once; `memory` 16-byte aligned.
void chase_build(void* memory, std::size_t bytes, std::uint64_t key, void* stream);

/// One thread follows the links with loads that pass by the L1 cache. Sets `*end` and `*elapsed_ns` (device
/// memory): the time between its first and its last load by the GPU's own clock.
void chase_walk(const void* memory, std::size_t bytes, std::uint64_t key, std::size_t start,
                std::size_t steps, ChaseEnd* end, double* elapsed_ns, void* stream);
}  // namespace cuda
}  // namespace assay::kernels
