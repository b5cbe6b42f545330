// SPDX-License-Identifier: Apache-2.0
// Whether the device was met, or a cache.
#pragma once

#include <cstdint>
#include <optional>

namespace assay::storage {

/// Bytes that the kernel fetched from and sent to storage layers for this process and its threads
/// (/proc/self/io).
struct Moved {
  std::uint64_t read = 0, written = 0;
};
std::optional<Moved> moved_now();

/// Share of the bytes of a file from `offset` on that are in the page cache, by cachestat or mincore; nothing
/// where neither tells.
std::optional<double> resident_share(int fd, std::uint64_t offset, std::uint64_t bytes);

/// A rate is claimed to be that of storage only where the kernel moved so much of what was asked for.
inline constexpr double least_moved_share = 0.95;

}  // namespace assay::storage
