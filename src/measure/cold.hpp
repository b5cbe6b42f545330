// SPDX-License-Identifier: Apache-2.0
// Whether a file was read from and written to its storage, or a cache.
#pragma once

#include <cstdint>
#include <optional>

namespace assay {

/// Bytes that the kernel fetched from and sent to storage layers for this process and its threads
/// (/proc/self/io).
struct Moved {
  std::uint64_t read = 0, written = 0;
};
std::optional<Moved> moved_now();

/// What the kernel has moved since its construction.
class StorageMeter {
 public:
  explicit StorageMeter(bool write) : write_(write), before_(moved_now()) {}
  /// Bytes read or written; NaN where the kernel does not tell.
  double moved() const;

 private:
  bool write_;
  std::optional<Moved> before_;
};

/// Share of the bytes of a file from `offset` on that are in the page cache, by cachestat or mincore; nothing
/// where neither tells.
std::optional<double> resident_share(int fd, std::uint64_t offset, std::uint64_t bytes);

/// A rate is claimed to be that of storage only where the kernel moved so much of what was asked for.
inline constexpr double least_moved_share = 0.95;

}  // namespace assay
