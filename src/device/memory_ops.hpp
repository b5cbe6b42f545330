// SPDX-License-Identifier: Apache-2.0
// What a device has beside its main memory: memory inside its processor, and a path to the host's memory.
// GPUs have both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/pattern.hpp"

namespace assay {

/// - l1: the tags and lines of the L1 (and texture) caches
/// - shared: all of the shared memory that a block may have, by march elements
/// - l2: half of the L2 cache, written and read by every multiprocessor
enum class OnChip { l1, shared, l2 };
const char* to_string(OnChip test) noexcept;

/// Multiprocessors have numbers below this; a GPU may leave some of them out.
inline constexpr std::size_t max_multiprocessor_number = 1024;

/// What a test of on-chip memory did and found.
struct OnChipResult {
  std::uint64_t bytes = 0;          ///< verified, by all multiprocessors together
  std::size_t multiprocessors = 0;  ///< that the device has
  std::vector<int> visited;         ///< that took part. All must, or the test says nothing about some
  std::uint64_t errors = 0;         ///< wrong words, exactly
  std::vector<kernels::ErrorRecord>
      first;  ///< index: of the 4-byte (l1) or 8-byte word in the multiprocessor's memory or in the region
};

/// Which way a copy between the host's memory and the device's goes, or inside the device's; and what makes
/// it: the device's copy engines (inside the device whatever the system takes for it), or its threads.
enum class CopyWay { to_device, to_host, inside };
enum class CopyBy { engine, threads };

class MemoryOps {
 public:
  virtual ~MemoryOps() = default;

  /// One round of a test; `key` seeds its data. Complete on return.
  virtual OnChipResult on_chip(OnChip test, std::uint64_t key) = 0;

  /// Host memory that the device reaches by itself (pinned), in NUMA domain `numa` (the system's number; -1:
  /// any). Stays until the next call. Throws Error(resource).
  virtual void* host_buffer(int numa, std::size_t bytes) = 0;
  /// How it came to lie there: "bound", "first touch" where the system refuses to bind it, or "any".
  virtual std::string host_buffer_way() const = 0;
  /// Queues a copy between that and the device's memory or inside it, in a queue of its own for each way to
  /// and from the host: they overlap.
  virtual void start_copy(CopyWay way, CopyBy by, void* to, const void* from, std::size_t bytes) = 0;
  /// Waits for the queues.
  virtual void finish_copies() = 0;
};

}  // namespace assay
