// SPDX-License-Identifier: Apache-2.0
// What the control groups (version 1 or 2) of this process leave it. `root` stands before /proc and /sys.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace assay {

/// Directories of a controller from the process's own group up to the root of the mount, deepest first.
std::vector<std::string> cgroup_levels(const std::string& root, const std::string& controller, bool version2);

struct CgroupMemory {
  double limit_bytes = 0;
  double used_bytes = 0;  ///< NaN where it cannot be read
};
/// Of the level that leaves the least room, which need not be the one with the smallest limit. Page cache
/// that the kernel gives back under pressure is not in the way. nullopt without a limit below `total_bytes`,
/// the memory of the machine (0: unknown).
std::optional<CgroupMemory> cgroup_memory(const std::string& root, double total_bytes);

/// Memory that a new allocation may still use: the least of MemAvailable and what the memory cgroup leaves.
std::size_t available_memory_bytes(const std::string& root = "");

}  // namespace assay
