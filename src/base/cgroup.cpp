// SPDX-License-Identifier: Apache-2.0
#include "base/cgroup.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <sstream>

#include "base/system.hpp"

namespace assay {
namespace {

struct Mount {
  std::string root, point;  ///< the subtree mounted, and where
  bool version2 = false;
  std::string options;  ///< of the file system: the controllers of version 1
};

bool has_word(const std::string& list, const std::string& word) {
  return ("," + list + ",").find("," + word + ",") != std::string::npos;
}

// "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory"
std::vector<Mount> cgroup_mounts(const std::string& root) {
  std::vector<Mount> mounts;
  std::istringstream lines(read_text(root + "/proc/self/mountinfo").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    const auto dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream head(line), tail(line.substr(dash + 3));
    std::string skip, type, source, options;
    Mount mount;
    head >> skip >> skip >> skip >> mount.root >> mount.point;
    tail >> type >> source >> options;
    if (type != "cgroup" && type != "cgroup2") continue;
    mount.version2 = type == "cgroup2";
    mount.options = options;
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

// This process's path for a controller ("" = version 2) in /proc/self/cgroup: "4:memory:/a/b", "0::/a/b".
std::optional<std::string> own_path(const std::string& root, const std::string& controller) {
  std::istringstream lines(read_text(root + "/proc/self/cgroup").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool match = controller.empty() ? line.starts_with("0::") : has_word(controllers, controller);
    if (match) return line.substr(second + 1);
  }
  return std::nullopt;
}

// Directories from the process's own group up to the root of the mount, deepest first.
std::vector<std::string> levels(const std::string& root, const Mount& mount, std::string path) {
  // In a container without a cgroup namespace the path begins with what is mounted here as the root.
  if (mount.root != "/" && path.starts_with(mount.root)) path = path.substr(mount.root.size());
  if (path.find("..") != std::string::npos) path.clear();
  std::vector<std::string> directories;
  while (path.size() > 1) {
    directories.push_back(root + mount.point + path);
    path = path.substr(0, path.rfind('/'));
  }
  directories.push_back(root + mount.point);
  return directories;
}

std::optional<std::int64_t> stat_value(const std::string& file, const std::string& key) {
  std::istringstream lines(read_text(file).value_or(""));
  std::string name;
  std::int64_t value = 0;
  while (lines >> name >> value) {
    if (name == key) return value;
  }
  return std::nullopt;
}

std::optional<CgroupMemory> memory_of(const std::string& directory, bool version2) {
  const auto limit = read_integer(directory + (version2 ? "/memory.max" : "/memory.limit_in_bytes"));
  // Version 1 writes "no limit" as a number near 2^63.
  if (!limit || static_cast<double>(*limit) >= 0x1p62) return std::nullopt;
  const auto use = read_integer(directory + (version2 ? "/memory.current" : "/memory.usage_in_bytes"));
  CgroupMemory memory{static_cast<double>(*limit), std::numeric_limits<double>::quiet_NaN()};
  if (!use) return memory;
  const auto cache =
      stat_value(directory + "/memory.stat", version2 ? "inactive_file" : "total_inactive_file");
  memory.used_bytes = std::max(0.0, static_cast<double>(*use - cache.value_or(0)));
  return memory;
}

double room(const CgroupMemory& memory) {
  return std::max(0.0, memory.limit_bytes - (std::isnan(memory.used_bytes) ? 0 : memory.used_bytes));
}

}  // namespace

std::vector<std::string> cgroup_levels(const std::string& root, const std::string& controller,
                                       bool version2) {
  const auto path = own_path(root, version2 ? "" : controller);
  if (!path) return {};
  for (const Mount& mount : cgroup_mounts(root)) {
    if (mount.version2 != version2 || (!version2 && !has_word(mount.options, controller))) continue;
    return levels(root, mount, *path);
  }
  return {};
}

std::optional<CgroupMemory> cgroup_memory(const std::string& root, double total_bytes) {
  std::optional<CgroupMemory> least;
  // A hybrid system has both versions mounted; a controller lives in one of them, the other shows no files.
  for (const bool version2 : {false, true})
    for (const std::string& directory :
         cgroup_levels(root, controller_of("memory.limit_in_bytes"), version2)) {
      const auto memory = memory_of(directory, version2);
      if (!memory || (total_bytes > 0 && memory->limit_bytes >= total_bytes)) continue;
      if (!least || room(*memory) < room(*least)) least = memory;
    }
  return least;
}

std::size_t available_memory_bytes(const std::string& root) {
  double least = 0x1p63;
  std::istringstream lines(read_text(root + "/proc/meminfo").value_or(""));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("MemAvailable:")) least = 1024 * std::stod(line.substr(13));
  if (const auto group = cgroup_memory(root, 0)) least = std::min(least, room(*group));
  return static_cast<std::size_t>(least);
}

}  // namespace assay
