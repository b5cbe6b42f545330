// SPDX-License-Identifier: Apache-2.0
// Whether a file was read from and written to its storage, or a cache.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace assay {

/// Bytes that the kernel fetched from and sent to storage layers for this process and its threads
/// (/proc/self/io).
struct Moved {
  std::uint64_t read = 0, written = 0;
};
std::optional<Moved> moved_now();

/// Whether a file system (statfs(2): f_type) adds to these counters only what reached storage. ZFS adds what
/// its own cache in memory answered, too. FUSE adds nothing for reads, and for writes what its daemon took.
bool counts_storage_alone(long type) noexcept;
/// The same of the file system that `path` lies in; false where it cannot be asked.
bool counts_storage_alone(const std::string& path) noexcept;

/// What the kernel has moved since its construction, for files in a file system.
class StorageMeter {
 public:
  StorageMeter(bool write, const std::string& path) : StorageMeter(write, std::vector<std::string>{path}) {}
  /// Of all these paths together: one of which the kernel does not tell is enough for it not to tell.
  StorageMeter(bool write, const std::vector<std::string>& paths);
  /// Bytes read or written; NaN where the kernel does not tell.
  double moved() const;

 private:
  bool write_;
  std::optional<Moved> before_;
};

/// Share of the bytes of a file from `offset` on that are in the page cache, by cachestat, or by mincore
/// where that does not tell or tells none; nothing where neither tells.
std::optional<double> resident_share(int fd, std::uint64_t offset, std::uint64_t bytes);

/// A rate is claimed to be that of storage only where the kernel moved so much of what was asked for.
inline constexpr double least_moved_share = 0.95;
/// `moved` of `asked` bytes, at most the share `resident` of them in the page cache before. False for NaN.
constexpr bool met_storage(double moved, double asked, double resident) noexcept {
  return moved >= least_moved_share * asked && resident <= 1 - least_moved_share;
}

}  // namespace assay
