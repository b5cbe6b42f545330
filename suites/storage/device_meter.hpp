// SPDX-License-Identifier: Apache-2.0
// What the disks beneath a directory, or the NFS client, have counted: not the part that a cache between a
// file system and its disk or server answered.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "measure/cold.hpp"
#include "transport/communicator.hpp"

namespace assay::storage {

/// Directories in sysfs of the disks that hold all data of files below the directory: beneath partitions,
/// RAID, device mapper, loop devices (whose file may be in memory), and all of a btrfs. None where that
/// cannot be told: network file systems, those in memory, and those that spread data over devices which they
/// do not name (ZFS, overlays).
std::vector<std::filesystem::path> disks_beneath(const std::string& directory);

/// Bytes read and written since boot, by the text of `stat` in these directories; nothing where one does not
/// count: `queue/iostats` is 0, or nothing was ever written. Counts from before that are of no use.
std::optional<Moved> counted_by(const std::vector<std::filesystem::path>& disks);

/// Bytes that the NFS client fetched from and sent to the servers of the mount at `point`, by the text of
/// /proc/self/mountstats; nothing where no NFS mount is there.
std::optional<Moved> counted_by_nfs(const std::string& mountstats, const std::string& point);

/// The requests of a disk that ended, and the time that each took, summed: with the time in the kernel's
/// queue.
struct DiskWork {
  std::string disk;
  double requests = 0, seconds = 0;
  std::string kind = {};  ///< model, and whether it rotates
};
/// Since boot. The kernel counts milliseconds in 32 bits.
std::vector<DiskWork> work_of(const std::vector<std::filesystem::path>& disks, bool write);
std::vector<DiskWork> work_since(const std::vector<DiskWork>& before, std::vector<DiskWork> now);

/// "sdb took 12.3 ms for a request, 3.1 times the 4 ms of sda, sdc" where a disk took `slow_member` times as
/// long for a request as the median of the others of its kind or more; "" where none did, or they cannot be
/// compared: one disk of a kind (a cache and what is behind it), or less than 100 requests of a disk. Disks
/// with less than a tenth of the most requests and half of the most time (spares, the end of a concatenation)
/// are left out.
std::string slow_member_of(const std::vector<DiskWork>& work);
inline constexpr double slow_member = 2;

/// What they count from its construction on, for all processes of the machine: at least what this run moved.
/// One rank of a node counts; the others have none.
class DeviceMeter {
 public:
  DeviceMeter(const std::vector<std::string>& directories, const Communicator& node);
  /// Bytes read or written; NaN where they do not tell. Call when all ranks of the node are through.
  double moved(bool write) const;
  /// Of several disks the one that is slower than the others, as `slow_member_of` tells it.
  std::string slow_disk(bool write) const;

 private:
  std::optional<Moved> counted() const;

  std::vector<std::filesystem::path> disks_;
  std::set<std::string> nfs_;  ///< mount points
  std::optional<Moved> before_;
  std::vector<DiskWork> read_before_, written_before_;
};

}  // namespace assay::storage
