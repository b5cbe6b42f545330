// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>

#include "base/system.hpp"
#include "topology/discover.hpp"
#include "topology/probe_parts.hpp"
#include "topology/sysfs.hpp"

namespace assay {

std::string join_distinct(const std::vector<std::string>& values) {
  std::string text;
  std::vector<std::string> seen;
  for (const std::string& value : values) {
    if (value.empty() || std::find(seen.begin(), seen.end(), value) != seen.end()) continue;
    seen.push_back(value);
    if (!text.empty()) text += ',';
    text += value;
  }
  return text;
}

Node probe_node(const std::string& root) {
  Node node;
  node.hostname = root.empty() ? host_name() : sysfs::line(root + "/proc/sys/kernel/hostname");
  node.hostname = node.hostname.substr(0, node.hostname.find('.'));
  if (node.hostname.empty()) node.hostname = "localhost";
  node.id = node.hostname;
  node.id_source = "hostname";
  const bool ask_hwloc = root.empty() || std::getenv("HWLOC_XMLFILE") != nullptr;
  if (!ask_hwloc || !probe_hwloc(node)) probe_sysfs_cpus(node, root);
  probe_cpu(node, root);
  probe_system(node, root);
  probe_cgroup(node, root);
  probe_nics(node, root);
  probe_pci(node, root);
  return node;
}

double own_quota_cores() {
  Node node;
  probe_cgroup(node, "");
  return node.cpu_quota_cores;
}

}  // namespace assay
