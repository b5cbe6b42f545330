// SPDX-License-Identifier: Apache-2.0
// Shards of a training state on a file system: written, synced, read back.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace assay::train {

/// The fixed 64 bytes before the payload of a shard.
struct ShardHeader {
  char magic[8] = {'a', 's', 's', 'a', 'y', 'c', 'k', 'p'};
  std::uint64_t version = 1;
  std::uint64_t step = 0;
  std::uint64_t rank = 0, ranks = 1;
  std::uint64_t first = 0, bytes = 0;  ///< of the whole state, and of this payload
  std::uint64_t digest = 0;            ///< kernels/digest.hpp of the payload
};
static_assert(sizeof(ShardHeader) == 64);

struct WriteTimes {
  double write_s = 0, sync_s = 0;
};

std::filesystem::path shard_path(const std::filesystem::path& folder, int rank);

/// Header of a rank's payload in a state of shards of equal size. Takes as long as a digest of it.
ShardHeader header_of(std::uint64_t step, int rank, int ranks, std::span<const std::byte> payload);

/// Writes header and payload, waits until the file system says they are safe, and, after the clock, lets go
/// of their pages. Throws Error(resource) that names the file and the reason (full, read-only, ...).
WriteTimes write_shard(const std::filesystem::path& file, const ShardHeader& header,
                       std::span<const std::byte> payload);

struct ShardRead {
  double read_s = 0;    ///< once its pages are let go of, without the check of its digest
  double resident = 1;  ///< share of the file that was in the page cache before; 1 where it is unknown
};

/// Reads a shard past the page cache, as far as the file system lets go of it, and checks it: magic, version,
/// step, rank, length, digest. Throws Error(resource) when it cannot be read, Error(data) that names file and
/// difference when it is not what was written; `payload` must have its size.
ShardRead read_shard(const std::filesystem::path& file, std::uint64_t step, int rank,
                     std::span<std::byte> payload);

/// Marks a complete checkpoint: an empty file DONE in the folder, synced with it.
void mark_done(const std::filesystem::path& folder);
bool is_done(const std::filesystem::path& folder) noexcept;

}  // namespace assay::train
