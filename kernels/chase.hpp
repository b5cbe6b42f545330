// SPDX-License-Identifier: Apache-2.0
// Latency by dependent loads: one node per cache line, linked into one random cycle over the whole buffer.
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::kernels {

inline constexpr std::size_t chase_node_bytes = 64;

struct ChaseEnd {
  std::size_t node = 0;  ///< where the walk stands; the next walk may start there
  bool intact = true;    ///< every node met was one that chase_build made with this key
};

namespace host {
/// Links the bytes / 64 nodes of `memory` (8-byte aligned) into one cycle, a random cyclic permutation
/// (Sattolo 1986) that depends on `key` alone. Fewer than two nodes make a cycle of one.
void chase_build(void* memory, std::size_t bytes, std::uint64_t key) noexcept;

/// Follows `steps` links from node `start`. A walk that meets a foreign node ends there with `intact` false.
ChaseEnd chase_walk(const void* memory, std::size_t bytes, std::uint64_t key, std::size_t start,
                    std::size_t steps) noexcept;
}  // namespace host
}  // namespace assay::kernels
