// SPDX-License-Identifier: Apache-2.0
#include "base/cgroup.hpp"

#include <gtest/gtest.h>

#include "tests/unit/topology_tree.hpp"

namespace assay {
namespace {

using assay::testing::Tree;

constexpr std::size_t gib = std::size_t{1} << 30;

TEST(AvailableMemory, PageCacheOfTheJobsOwnGroupIsNotInTheWay) {
  const std::string limit = std::to_string(64 * gib), used = std::to_string(60 * gib),
                    cache = "anon 1\ninactive_file " + std::to_string(55 * gib) + "\n";
  Tree tree;
  tree.file("/proc/meminfo", "MemTotal: 1 kB\nMemAvailable: " + std::to_string(500 * gib / 1024) + " kB\n")
      .file("/proc/self/cgroup", "0::/slurm/job/step\n")
      .file("/proc/self/mountinfo", "30 20 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
  EXPECT_EQ(available_memory_bytes(tree.root()), 500 * gib) << "no limit";
  tree.file("/sys/fs/cgroup/slurm/job/memory.max", limit + "\n")
      .file("/sys/fs/cgroup/slurm/job/memory.current", used + "\n")
      .file("/sys/fs/cgroup/slurm/job/memory.stat", cache)
      .file("/sys/fs/cgroup/slurm/job/step/memory.max", "max\n");
  EXPECT_EQ(available_memory_bytes(tree.root()), 59 * gib) << "the level above the step's own";
  tree.file("/sys/fs/cgroup/slurm/memory.max", std::to_string(8 * gib) + "\n")
      .file("/sys/fs/cgroup/slurm/memory.current", std::to_string(9 * gib) + "\n");
  EXPECT_EQ(available_memory_bytes(tree.root()), 0U) << "over its limit";
}

TEST(AvailableMemory, VersionOneCountsTheCacheOfGroupsBelow) {
  Tree tree;
  tree.file("/proc/self/cgroup", "4:memory:/job\n")
      .file("/proc/self/mountinfo",
            "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n");
  const std::string job = "/sys/fs/cgroup/memory/job/memory.";
  tree.file(job + "limit_in_bytes", std::to_string(64 * gib) + "\n")
      .file(job + "usage_in_bytes", std::to_string(60 * gib) + "\n")
      .file(job + "stat", "inactive_file 0\ntotal_inactive_file " + std::to_string(50 * gib) + "\n");
  EXPECT_EQ(available_memory_bytes(tree.root()), 54 * gib);
}

TEST(AvailableMemory, OfThisMachineIsPlausible) {
  EXPECT_GT(available_memory_bytes(), std::size_t{1} << 20);
  EXPECT_LT(available_memory_bytes(), std::size_t{1} << 50);
}

}  // namespace
}  // namespace assay
