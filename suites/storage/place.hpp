// SPDX-License-Identifier: Apache-2.0
// What is behind a directory: its mount, and the disks or the network interface that it is on.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "suites/storage/disk_health.hpp"

namespace assay::storage {

struct Mount {
  std::string point, type, source, options;
};
/// The mount that holds `path` (resolved), of the text of /proc/self/mountinfo: the longest mount point that
/// is a part of it, the last of equals.
std::optional<Mount> mount_of(const std::string& mountinfo, const std::string& path);

/// A word of such texts, in which spaces and the like are written as \040.
std::string unescaped(const std::string& text);

/// The mount of a directory that does not answer, by its name alone: links in it are not followed.
std::optional<Mount> mount_of_name(const std::string& directory);
/// The mount of an existing directory; none where it cannot be told.
std::optional<Mount> mount_now(const std::string& directory);
/// What holds the files of a directory: for an overlay its upper directory, where new files are. The
/// directory itself for others, and where the upper one cannot be seen from here.
std::string beneath_overlays(const std::string& directory);
/// That directory of an overlay's mount options; "" where there is none.
std::string upper_of(const Mount& mount);
/// Whether an open file of this path, which may have lost its name, lies in tmpfs or ramfs, where the page
/// cache is all there is.
bool is_in_memory(int fd, const std::string& path);
/// Whether all nodes that mount a file system of this type see the same files.
bool is_network(const std::string& type);

struct Disk {
  std::string name, model, firmware;  ///< "nvme0n1"
  std::string link;                   ///< "16.0 GT/s x4", "6.0 Gbps"; "" where unknown
  double link_rate;                   ///< B/s after the line code; NaN where unknown, and of hard disks
  DiskHealth health;
  std::string backing;  ///< the file of a loop device

  /// Model, firmware and link as far as they are known: what namesakes on other nodes should have alike.
  std::string kind() const;
};

struct Place {
  Mount mount;
  std::vector<Disk> disks;  ///< of the block devices below; none for a network file system
  double total_bytes, free_bytes, free_inodes;
  /// B/s: `link_rate_below`, or the interface to the server of a network file system; NaN where unknown.
  double link_rate;
  std::string interface;  ///< to that server

  std::string text() const;
};

/// The block device of the files in a directory: of file systems with a number of their own (btrfs) that of
/// the mount's source.
dev_t device_beneath(const std::string& directory);
/// Directories in sysfs of the block devices with hardware of their own below the device of this number, as
/// sysfs below `root` shows: beneath partitions, RAID and device mapper, and all of a btrfs.
std::vector<std::filesystem::path> block_devices_below(const std::string& root, unsigned major,
                                                       unsigned minor);
/// What sysfs and the devices tell of these.
std::vector<Disk> disks_below(const std::string& root, unsigned major, unsigned minor);
/// B/s that the links of these disks carry for the device above them: of all that md stripes (raid0), else of
/// the slowest, because a file may be on that alone. NaN where one is unknown.
double link_rate_below(const std::string& root, unsigned major, unsigned minor,
                       const std::vector<Disk>& disks);
/// Looks at the directory. Throws Refused.
Place look_at_place(const std::string& directory);

}  // namespace assay::storage
