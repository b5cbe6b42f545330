// SPDX-License-Identifier: Apache-2.0
#include "suites/storage/device_meter.hpp"

#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <sstream>

#include "base/system.hpp"
#include "suites/storage/folder.hpp"
#include "suites/storage/place.hpp"

namespace assay::storage {
namespace {

namespace fs = std::filesystem;

/// File systems whose data are on the devices beneath `device_beneath`, and nowhere else.
bool is_on_known_devices(const std::optional<Mount>& mount) {
  static const std::set<std::string> types = {"btrfs", "ext2", "ext3", "ext4", "xfs"};
  return mount && types.contains(mount->type) && mount->options.find("rtdev=") == std::string::npos;
}

/// The file of a loop device; "" where it has none, or one that this process cannot see.
std::string file_behind(const fs::path& disk) {
  std::string file = read_text((disk / "loop/backing_file").string()).value_or("");
  file.erase(std::min(file.find('\n'), file.size()));
  struct stat info {};
  loop_info64 loop{};
  const Descriptor fd(::open(("/dev/" + disk.filename().string()).c_str(), O_RDONLY | O_CLOEXEC));
  // Another file may have this name in the mounts of this process.
  const bool same = !file.empty() && fd && ::stat(file.c_str(), &info) == 0 &&
                    ::ioctl(fd.get(), LOOP_GET_STATUS64, &loop) == 0 && loop.lo_device == info.st_dev &&
                    loop.lo_inode == info.st_ino;
  return same ? file : "";
}

std::vector<fs::path> disks_of_file(const std::string& file_path, int depth) {
  const std::string path = beneath_overlays(file_path);
  if (depth == 0 || !is_on_known_devices(mount_now(path))) return {};
  std::vector<fs::path> out;
  const dev_t device = device_beneath(path);
  for (const fs::path& disk : block_devices_below("/sys", ::major(device), ::minor(device))) {
    const std::string file = file_behind(disk);
    const auto below = file.empty() ? std::vector<fs::path>{} : disks_of_file(file, depth - 1);
    if (below.empty()) out.push_back(disk);
    out.insert(out.end(), below.begin(), below.end());
  }
  return out;
}

/// Columns of /sys/block/*/stat (Documentation/block/stat.rst): sectors of 512 bytes, whatever the disk has.
struct Stat {
  std::uint64_t reads = 0, merged_reads = 0, sectors_read = 0, read_ms = 0;
  std::uint64_t writes = 0, merged_writes = 0, sectors_written = 0, write_ms = 0;
};
std::optional<Stat> stat_of(const fs::path& disk) {
  std::istringstream columns(read_text((disk / "stat").string()).value_or(""));
  Stat s;
  columns >> s.reads >> s.merged_reads >> s.sectors_read >> s.read_ms;
  columns >> s.writes >> s.merged_writes >> s.sectors_written >> s.write_ms;
  const std::string counts = read_text((disk / "queue/iostats").string()).value_or("1");
  if (!columns || s.sectors_written == 0 || counts.starts_with("0")) return std::nullopt;
  return s;
}

}  // namespace

std::vector<fs::path> disks_beneath(const std::string& directory) {
  constexpr int most_loops = 8;
  return disks_of_file(directory, most_loops);
}

std::optional<Moved> counted_by(const std::vector<fs::path>& disks) {
  Moved all;
  for (const fs::path& disk : disks) {
    constexpr std::uint64_t sector = 512;
    const auto one = stat_of(disk);
    if (!one) return std::nullopt;
    all.read += sector * one->sectors_read;
    all.written += sector * one->sectors_written;
  }
  return disks.empty() ? std::nullopt : std::optional(all);
}

std::vector<DiskWork> work_of(const std::vector<fs::path>& disks, bool write) {
  std::vector<DiskWork> out;
  for (const fs::path& disk : disks) {
    const auto s = stat_of(disk).value_or(Stat{});
    out.push_back({disk.filename().string(), static_cast<double>(write ? s.writes : s.reads),
                   1e-3 * static_cast<double>(write ? s.write_ms : s.read_ms),
                   read_text((disk / "device/model").string()).value_or("") +
                       read_text((disk / "queue/rotational").string()).value_or("")});
  }
  return out;
}

std::vector<DiskWork> work_since(const std::vector<DiskWork>& before, std::vector<DiskWork> now) {
  constexpr double wraps_s = 4294967.296;  // milliseconds of 32 bits
  now.resize(std::min(now.size(), before.size()));
  for (std::size_t i = 0; i < now.size(); ++i) {
    now[i].requests -= before[i].requests;
    now[i].seconds -= before[i].seconds;
    if (now[i].seconds < 0) now[i].seconds += wraps_s;
  }
  return now;
}

namespace {

/// Of disks of one kind.
std::string slow_one_of(const std::vector<DiskWork>& work) {
  constexpr double least_requests = 100, counted_s = 0.02;
  double most = 0, most_s = 0;
  for (const DiskWork& disk : work) {
    most = std::max(most, disk.requests);
    most_s = std::max(most_s, disk.seconds);
  }
  std::vector<std::pair<double, std::string>> taken;  // s of a request
  for (const DiskWork& disk : work)
    // A mirror that is 20 times as slow gets a twentieth of the requests, and waits for them as long.
    if (disk.requests >= least_requests && (disk.requests >= most / 10 || disk.seconds >= most_s / 2))
      taken.emplace_back(disk.seconds / disk.requests, disk.disk);
  if (taken.size() < 2) return "";
  std::sort(taken.begin(), taken.end());
  const auto [slowest, name] = taken.back();
  taken.pop_back();
  constexpr double least_s = 1e-6;  // of a request: the kernel tells sums in milliseconds
  const double others = std::max(least_s, taken[taken.size() / 2].first);
  if (slowest < slow_member * others || slowest * most < counted_s) return "";
  std::vector<std::string> names;
  for (const auto& other : taken) names.push_back(other.second);
  return fmt::format("{} took {:.3g} ms for a request, {:.3g} times the {:.3g} ms of {}", name, 1e3 * slowest,
                     slowest / others, 1e3 * others, fmt::join(names, ", "));
}

}  // namespace

std::string slow_member_of(const std::vector<DiskWork>& work) {
  std::map<std::string, std::vector<DiskWork>> kinds;
  for (const DiskWork& disk : work) kinds[disk.kind].push_back(disk);
  for (const auto& [kind, disks] : kinds)
    if (std::string text = slow_one_of(disks); !text.empty()) return text;
  return "";
}

std::optional<Moved> counted_by_nfs(const std::string& mountstats, const std::string& point) {
  std::optional<Moved> found;
  bool here = false;
  std::istringstream lines(mountstats);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first, source, mounted, on, place, with, fstype, type;
    words >> first;
    if (first == "device") {
      words >> source >> mounted >> on >> place >> with >> fstype >> type;
      here = type.starts_with("nfs") && unescaped(place) == point;
    } else if (here && first == "bytes:") {
      // Documented with nfsiostat: by read(2), by write(2), the same with O_DIRECT, from and to the server.
      std::uint64_t read = 0, written = 0, direct_read = 0, direct_written = 0;
      Moved servers;
      words >> read >> written >> direct_read >> direct_written >> servers.read >> servers.written;
      if (words) found = servers;
    }
  }
  return found;
}

DeviceMeter::DeviceMeter(const std::vector<std::string>& directories, const Communicator& node) {
  if (node.rank() != 0) return;
  for (const std::string& directory : directories) {
    const auto disks = disks_beneath(directory);
    const auto mount = disks.empty() ? mount_now(directory) : std::nullopt;
    if (mount && mount->type.starts_with("nfs"))
      nfs_.insert(mount->point);
    else if (disks.empty())
      return;  // before_ is empty: no directory's part would be all
    disks_.insert(disks_.end(), disks.begin(), disks.end());
  }
  std::sort(disks_.begin(), disks_.end());
  disks_.erase(std::unique(disks_.begin(), disks_.end()), disks_.end());
  before_ = counted();
  read_before_ = work_of(disks_, false);
  written_before_ = work_of(disks_, true);
}

std::string DeviceMeter::slow_disk(bool write) const {
  return slow_member_of(work_since(write ? written_before_ : read_before_, work_of(disks_, write)));
}

std::optional<Moved> DeviceMeter::counted() const {
  Moved all;
  if (!disks_.empty()) {
    const auto disks = counted_by(disks_);
    if (!disks) return std::nullopt;
    all = *disks;
  }
  const std::string stats = nfs_.empty() ? "" : read_text("/proc/self/mountstats").value_or("");
  for (const std::string& point : nfs_) {
    const auto client = counted_by_nfs(stats, point);
    if (!client) return std::nullopt;
    all.read += client->read;
    all.written += client->written;
  }
  return disks_.empty() && nfs_.empty() ? std::nullopt : std::optional(all);
}

double DeviceMeter::moved(bool write) const {
  const auto now = before_ ? counted() : std::nullopt;
  if (!now) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(write ? now->written - before_->written : now->read - before_->read);
}

}  // namespace assay::storage
