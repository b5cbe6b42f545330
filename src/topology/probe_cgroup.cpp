// SPDX-License-Identifier: Apache-2.0
#include "base/cgroup.hpp"
#include "base/system.hpp"
#include "topology/probe_parts.hpp"
#include "topology/sysfs.hpp"

namespace assay {
namespace {

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
  if (const auto memory = cgroup_memory(root, static_cast<double>(node.memory_bytes))) {
    node.cgroup_limit_bytes = memory->limit_bytes;
    node.cgroup_used_bytes = memory->used_bytes;
  }
  for (const bool version2 : {false, true})
    take_quota(node, cgroup_levels(root, controller_of("cpu.cfs_quota_us"), version2), version2);
}

}  // namespace assay
