// SPDX-License-Identifier: Apache-2.0
#include "suites/storage/place.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <linux/magic.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>
#include <sstream>

#include "base/system.hpp"
#include "suites/storage/folder.hpp"
#include "suites/storage/refused.hpp"

namespace assay::storage {
namespace {

namespace fs = std::filesystem;
constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

std::string line_of(const fs::path& file) {
  std::string text = read_text(file.string()).value_or("");
  text.erase(std::min(text.find('\n'), text.size()));
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}
double leading(const std::string& text) {
  double value = unknown;
  std::istringstream(text) >> value;
  return text.empty() ? unknown : value;
}

/// The PCIe link of an NVMe controller, or the SATA link of a port: of the nearest part above the disk.
void find_link(Disk& disk, const fs::path& root, fs::path device) {
  std::error_code none;
  for (; device.has_relative_path() && device != root; device = device.parent_path()) {
    const std::string name = device.filename().string();  // .../ata1/link1/ata_link/link1/sata_spd
    if (name.starts_with("ata") && name.size() > 3) {
      const std::string link = "link" + name.substr(3);
      disk.link = line_of(device / link / "ata_link" / link / "sata_spd");
      if (leading(disk.link) > 0) disk.link_rate = leading(disk.link) * 1e9 * 0.8 / 8;
      return;
    }
    if (!fs::exists(device / "vendor", none) || !fs::exists(device / "class", none)) continue;
    const std::string speed = line_of(device / "current_link_speed"),
                      lanes = line_of(device / "current_link_width");
    // The link of another PCI device carries more than this disk, or less than a virtual one's.
    if (!disk.name.starts_with("nvme") || !(leading(speed) > 0) || !(leading(lanes) > 0)) return;
    const double code = leading(speed) < 8 ? 0.8 : 128.0 / 130;
    disk.link = fmt::format("{} x{}", speed.substr(0, speed.find(" PCIe")), lanes);
    disk.link_rate = leading(speed) * 1e9 * code / 8 * leading(lanes);
    return;
  }
}

/// With several paths to a disk, what is above it is a subsystem; its first controller stands for it.
fs::path controller_of(const fs::path& device) {
  std::error_code none;
  if (!device.filename().string().starts_with("nvme-subsys")) return device;
  std::set<fs::path> controllers;
  for (const auto& entry : fs::directory_iterator(device, none)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("nvme") && name.find_first_not_of("0123456789", 4) == std::string::npos)
      controllers.insert(fs::canonical(entry.path(), none));
  }
  return controllers.empty() ? device : *controllers.begin();
}

fs::path block_device(const std::string& root, unsigned major, unsigned minor) {
  std::error_code none;
  return fs::canonical(fs::path(root) / "dev/block" / fmt::format("{}:{}", major, minor), none);
}

/// All devices of a btrfs that this is one of; elsewhere itself.
std::vector<fs::path> members_with(const std::string& root, const fs::path& block) {
  std::error_code none;
  for (const auto& all : fs::directory_iterator(fs::path(root) / "fs/btrfs", none)) {
    if (!fs::exists(all.path() / "devices" / block.filename(), none)) continue;
    std::vector<fs::path> members;
    for (const auto& one : fs::directory_iterator(all.path() / "devices", none))
      members.push_back(fs::canonical(one.path(), none));
    std::sort(members.begin(), members.end());
    return members;
  }
  return {block};
}

void collect(const fs::path& block, std::set<std::string>& seen, std::vector<fs::path>& disks) {
  std::error_code none;
  if (fs::exists(block / "partition", none)) return collect(block.parent_path(), seen, disks);
  bool divided = false;
  for (const auto& below : fs::directory_iterator(block / "slaves", none)) {
    divided = true;
    collect(fs::canonical(below.path(), none), seen, disks);
  }
  const std::string name = block.filename().string();
  if (!divided && !name.empty() && seen.insert(name).second) disks.push_back(block);
}

Disk look_at_disk(const fs::path& root, const fs::path& block) {
  std::error_code none;
  Disk disk{block.filename().string(),
            line_of(block / "device/model"),
            line_of(block / "device/firmware_rev"),
            "",
            unknown,
            {},
            line_of(block / "loop/backing_file")};
  if (disk.firmware.empty()) disk.firmware = line_of(block / "device/rev");
  const fs::path device = controller_of(fs::canonical(block / "device", none));
  if (!device.empty()) find_link(disk, root, device);
  // What its platters give, 60 to 290 MB/s, says nothing of the link.
  if (line_of(block / "queue/rotational") == "1") disk.link_rate = unknown;
  disk.health = health_of(block, device);
  return disk;
}

double link_rate_of(const fs::path& block, const std::vector<Disk>& disks) {
  std::error_code none;
  if (fs::exists(block / "partition", none)) return link_rate_of(block.parent_path(), disks);
  std::vector<double> rates;
  for (const auto& below : fs::directory_iterator(block / "slaves", none))
    rates.push_back(link_rate_of(fs::canonical(below.path(), none), disks));
  if (rates.empty()) {
    const auto it = std::find_if(disks.begin(), disks.end(),
                                 [&](const Disk& disk) { return disk.name == block.filename(); });
    return it == disks.end() ? unknown : it->link_rate;
  }
  if (std::any_of(rates.begin(), rates.end(), [](double rate) { return std::isnan(rate); })) return unknown;
  const double least = *std::min_element(rates.begin(), rates.end());
  return line_of(block / "md/level") == "raid0" ? least * static_cast<double>(rates.size()) : least;
}

/// The interface through which an address is reached, by asking for a route.
std::string interface_to(const std::string& address) {
  sockaddr_in to{}, from{};
  to.sin_family = AF_INET;
  to.sin_port = htons(2049);
  socklen_t size = sizeof from;
  const Descriptor fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd || ::inet_pton(AF_INET, address.c_str(), &to.sin_addr) != 1 ||
      ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&from), &size) != 0)
    return "";
  ifaddrs* all = nullptr;
  std::string found;
  if (::getifaddrs(&all) != 0) return "";
  for (const ifaddrs* i = all; i != nullptr; i = i->ifa_next)
    if (i->ifa_addr != nullptr && i->ifa_addr->sa_family == AF_INET &&
        reinterpret_cast<const sockaddr_in*>(i->ifa_addr)->sin_addr.s_addr == from.sin_addr.s_addr)
      found = i->ifa_name;
  ::freeifaddrs(all);
  return found;
}

void find_server(Place& place) {
  const std::string& options = place.mount.options;
  const std::size_t at = options.find("addr=");  // the last of clientaddr=, mountaddr=, addr= is the server's
  const std::size_t last = at == std::string::npos ? at : options.rfind(",addr=");
  if (at == std::string::npos) return;
  const std::size_t begin = last == std::string::npos ? at + 5 : last + 6;
  place.interface = interface_to(options.substr(begin, options.find(',', begin) - begin));
  if (place.interface.empty()) return;
  const double megabits = leading(line_of("/sys/class/net/" + place.interface + "/speed"));
  if (megabits > 0) place.link_rate = megabits * 1e6 / 8;
}

}  // namespace

std::string unescaped(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::optional<Mount> mount_of(const std::string& mountinfo, const std::string& path) {
  std::optional<Mount> found;
  std::istringstream lines(mountinfo);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string id, parent, device, root, point, options, word, type, source, more;
    words >> id >> parent >> device >> root >> point >> options;
    while (words >> word && word != "-") {
    }
    words >> type >> source >> more;
    point = unescaped(point);
    const bool part = point == "/" || path == point || path.starts_with(point + "/");
    if (!part || (found && found->point.size() > point.size())) continue;
    found = Mount{point, type, unescaped(source), options + "," + more};
  }
  return found;
}

std::vector<fs::path> block_devices_below(const std::string& root, unsigned major, unsigned minor) {
  std::vector<fs::path> disks;
  std::set<std::string> seen;
  const fs::path block = block_device(root, major, minor);
  if (block.empty()) return disks;
  for (const fs::path& member : members_with(root, block)) collect(member, seen, disks);
  return disks;
}

std::vector<Disk> disks_below(const std::string& root, unsigned major, unsigned minor) {
  std::error_code none;
  std::vector<Disk> disks;
  for (const fs::path& block : block_devices_below(root, major, minor))
    disks.push_back(look_at_disk(fs::canonical(root, none), block));
  return disks;
}

double link_rate_below(const std::string& root, unsigned major, unsigned minor,
                       const std::vector<Disk>& disks) {
  const fs::path block = block_device(root, major, minor);
  if (block.empty()) return unknown;
  double least = std::numeric_limits<double>::infinity();
  for (const fs::path& member : members_with(root, block)) {
    const double rate = link_rate_of(member, disks);
    if (std::isnan(rate)) return rate;
    least = std::min(least, rate);
  }
  return least;
}

std::string Disk::kind() const {
  std::string out = !model.empty() ? model : backing.empty() ? "without a model" : "loop device";
  if (!firmware.empty()) out += ", firmware " + firmware;
  if (!link.empty()) out += ", link " + link;
  return out;
}

std::string Place::text() const {
  std::string out = fmt::format("{} on {} ({}, {})", mount.source, mount.point, mount.type, mount.options);
  for (const Disk& d : disks)
    out += fmt::format("; disk {} {}{}{}", d.name, d.kind(), d.backing.empty() ? "" : ", file ", d.backing);
  if (!interface.empty()) out += "; server through " + interface;
  return out;
}

std::optional<Mount> mount_of_name(const std::string& directory) {
  return mount_of(read_text("/proc/self/mountinfo").value_or(""), directory);
}

std::optional<Mount> mount_now(const std::string& directory) {
  std::error_code none;
  const std::string path = fs::canonical(directory, none).string();
  if (path.empty()) return std::nullopt;
  return mount_of_name(path);
}

std::string upper_of(const Mount& mount) {
  constexpr std::string_view key = ",upperdir=";
  const std::size_t at = mount.options.find(key);
  if (mount.type != "overlay" || at == std::string::npos) return "";
  const std::size_t begin = at + key.size();
  return unescaped(mount.options.substr(begin, mount.options.find(',', begin) - begin));
}

std::string beneath_overlays(const std::string& directory) {
  std::string at = directory;
  constexpr int most_overlays = 8;
  for (int i = 0; i < most_overlays; ++i) {
    const std::string upper = upper_of(mount_now(at).value_or(Mount{}));
    struct stat info {};
    if (upper.empty() || upper.front() != '/' || ::stat(upper.c_str(), &info) != 0) break;
    at = upper;
  }
  return at;
}

bool is_in_memory(int fd, const std::string& path) {
  struct statfs info {};
  if (::fstatfs(fd, &info) != 0) return false;
  if (info.f_type == OVERLAYFS_SUPER_MAGIC) {
    fs::path at = path;
    std::error_code none;
    while (at.has_relative_path() && !fs::exists(at, none)) at = at.parent_path();
    if (::statfs(beneath_overlays(at.string()).c_str(), &info) != 0) return false;
  }
  return info.f_type == TMPFS_MAGIC || info.f_type == RAMFS_MAGIC;
}

bool is_network(const std::string& type) {
  // As mountinfo names them; FUSE puts the name of the program behind a point.
  static const std::set<std::string> types = {
      "9p",      "virtiofs", "dvs",    "blobfuse",  "blobfuse2", "lizardfs", "saunafs",  "ossfs",
      "afs",     "afs3",     "beegfs", "ceph",      "cifs",      "fhgfs",    "gfs2",     "glusterfs",
      "gpfs",    "lustre",   "ncpfs",  "nfs",       "nfs4",      "ocfs2",    "orangefs", "panfs",
      "pvfs2",   "quobyte",  "smb3",   "smbfs",     "vastnfs",   "wekafs",   "alluxio",  "ceph-fuse",
      "curvefs", "daos",     "dfuse",  "gcsfuse",   "goofys",    "juicefs",  "JuiceFS",  "mfs",
      "moosefs", "rclone",   "s3fs",   "seaweedfs", "sshfs",     "mount-s3"};
  const auto point = type.starts_with("fuse.") ? type.substr(5) : type;
  return types.contains(point);
}

dev_t device_beneath(const std::string& directory) {
  struct stat info {
  }, source{};
  const dev_t device = ::stat(directory.c_str(), &info) == 0 ? info.st_dev : dev_t{};
  const std::string from = mount_now(directory).value_or(Mount{}).source;
  const bool own = ::major(device) == 0 && from.starts_with("/dev/") && ::stat(from.c_str(), &source) == 0;
  return own ? source.st_rdev : device;
}

Place look_at_place(const std::string& directory) {
  struct statvfs space {};
  struct stat info {};
  const Descriptor fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) throw Refused(directory + ": cannot open", errno);
  if (::fstatvfs(fd.get(), &space) != 0) throw Refused(directory + ": cannot ask for space", errno);
  if (::fstat(fd.get(), &info) != 0) throw Refused(directory + ": cannot look at", errno);
  Place place{};
  place.mount = mount_now(directory).value_or(Mount{});
  place.total_bytes = static_cast<double>(space.f_blocks) * static_cast<double>(space.f_frsize);
  place.free_bytes = static_cast<double>(space.f_bavail) * static_cast<double>(space.f_frsize);
  place.free_inodes = space.f_files > 0 ? static_cast<double>(space.f_favail) : unknown;
  const dev_t device = device_beneath(beneath_overlays(directory));
  place.disks = disks_below("/sys", ::major(device), ::minor(device));
  place.link_rate = link_rate_below("/sys", ::major(device), ::minor(device), place.disks);
  if (place.disks.empty()) find_server(place);
  return place;
}

}  // namespace assay::storage
