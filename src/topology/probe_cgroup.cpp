// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <optional>
#include <sstream>

#include "base/system.hpp"
#include "topology/probe_parts.hpp"
#include "topology/sysfs.hpp"

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

std::vector<std::string> controller_levels(const std::string& root, const std::string& controller,
                                           bool version2) {
  const auto path = own_path(root, version2 ? "" : controller);
  if (!path) return {};
  for (const Mount& mount : cgroup_mounts(root)) {
    if (mount.version2 != version2 || (!version2 && !has_word(mount.options, controller))) continue;
    return levels(root, mount, *path);
  }
  return {};
}

double stat_value(const std::string& file, const std::string& key) {
  std::istringstream lines(read_text(file).value_or(""));
  std::string name;
  double value = 0;
  while (lines >> name >> value) {
    if (name == key) return value;
  }
  return 0;
}

// The level that leaves the least room decides, which need not be the one with the smallest limit.
void take_memory(Node& node, const std::vector<std::string>& directories, bool version2) {
  const auto total = static_cast<double>(node.memory_bytes);
  double least = unsupported;
  for (const std::string& directory : directories) {
    const double limit = sysfs::number(directory + (version2 ? "/memory.max" : "/memory.limit_in_bytes"));
    const double use = sysfs::number(directory + (version2 ? "/memory.current" : "/memory.usage_in_bytes"));
    // Version 1 writes "no limit" as a number near 2^63; a limit beyond the machine's memory is none either.
    if (std::isnan(limit) || limit >= 0x1p62 || (total > 0 && limit >= total)) continue;
    // Page cache that the kernel gives back under pressure is not in the way.
    const double cache =
        stat_value(directory + "/memory.stat", version2 ? "inactive_file" : "total_inactive_file");
    const double used = std::isnan(use) ? 0 : std::max(0.0, use - cache);
    if (std::isnan(least) || limit - used < least) {
      least = limit - used;
      node.cgroup_limit_bytes = limit;
      node.cgroup_used_bytes = std::isnan(use) ? unsupported : used;
    }
  }
}

void take_quota(Node& node, const std::vector<std::string>& directories, bool version2) {
  for (const std::string& directory : directories) {
    double quota = unsupported, period = unsupported;
    if (version2) {  // "200000 100000" or "max 100000"
      const std::string text = sysfs::line(directory + "/cpu.max");
      quota = sysfs::leading_number(text);
      const auto blank = text.find(' ');
      if (blank != std::string::npos) period = sysfs::leading_number(text.substr(blank));
    } else {
      quota = sysfs::number(directory + "/cpu.cfs_quota_us");
      period = sysfs::number(directory + "/cpu.cfs_period_us");
    }
    if (!(quota > 0) || !(period > 0)) continue;
    const double cores = quota / period;
    if (!(node.cpu_quota_cores <= cores)) node.cpu_quota_cores = cores;
  }
}

}  // namespace

void probe_cgroup(Node& node, const std::string& root) {
  // A hybrid system has both versions mounted; a controller lives in one of them, the other shows no files.
  for (const bool version2 : {false, true}) {
    take_memory(node, controller_levels(root, controller_of("memory.limit_in_bytes"), version2), version2);
    take_quota(node, controller_levels(root, controller_of("cpu.cfs_quota_us"), version2), version2);
  }
}

}  // namespace assay
