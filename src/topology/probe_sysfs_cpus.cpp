// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "base/system.hpp"
#include "topology/probe_parts.hpp"
#include "topology/sysfs.hpp"

namespace assay {
namespace {

// "1024K", "32M" as in cache/index*/size.
std::uint64_t cache_bytes(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return 0;
  const char unit = end == text.data() + text.size() ? ' ' : *end;
  return unit == 'K' ? value << 10 : unit == 'M' ? value << 20 : unit == 'G' ? value << 30 : value;
}

void add_caches(Node& node, const std::string& cpu_directory) {
  for (const std::string& index : sysfs::numbered(cpu_directory + "/cache", "index")) {
    const std::string cache = cpu_directory + "/cache/" + index;
    const int level = static_cast<int>(read_integer(cache + "/level").value_or(0));
    if (level < 2 || sysfs::line(cache + "/type") == "Instruction") continue;
    Cache found{level, cache_bytes(sysfs::line(cache + "/size")),
                sysfs::cpu_list(cache + "/shared_cpu_list")};
    const bool known = std::any_of(node.caches.begin(), node.caches.end(), [&](const Cache& other) {
      return other.level == found.level && other.cpus == found.cpus;
    });
    if (!known && found.bytes > 0 && !found.cpus.empty()) node.caches.push_back(std::move(found));
  }
}

// "Node 0 MemTotal:       24684096 kB"
std::uint64_t domain_bytes(const std::string& meminfo) {
  const auto at = meminfo.find("MemTotal:");
  if (at == std::string::npos) return 0;
  const double kib = sysfs::leading_number(meminfo.substr(at + 9));
  return kib > 0 ? static_cast<std::uint64_t>(kib) * 1024 : 0;
}

}  // namespace

void probe_sysfs_cpus(Node& node, const std::string& root) {
  const std::string system = root + "/sys/devices/system";
  std::map<std::int64_t, std::vector<int>> sockets;
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<int>> cores;
  for (const std::string& name : sysfs::numbered(system + "/cpu", "cpu")) {
    const std::string directory = system + "/cpu/" + name;
    if (read_integer(directory + "/online").value_or(1) == 0) continue;
    const int cpu = std::stoi(name.substr(3));
    const std::int64_t socket =
        std::max<std::int64_t>(0, read_integer(directory + "/topology/physical_package_id").value_or(0));
    const std::int64_t core = read_integer(directory + "/topology/core_id").value_or(cpu);
    sockets[socket].push_back(cpu);
    cores[{socket, core}].push_back(cpu);
    ++node.pus;
    add_caches(node, directory);
  }
  for (auto& socket : sockets) node.socket_pus.push_back(std::move(socket.second));
  for (auto& core : cores) node.core_pus.push_back(std::move(core.second));
  node.sockets = static_cast<int>(node.socket_pus.size());
  node.cores = static_cast<int>(node.core_pus.size());
  for (const std::string& name : sysfs::numbered(system + "/node", "node")) {
    const std::string directory = system + "/node/" + name;
    const std::uint64_t bytes = domain_bytes(read_text(directory + "/meminfo").value_or(""));
    node.numa.push_back({std::stoi(name.substr(4)), sysfs::cpu_list(directory + "/cpulist"), bytes});
    node.memory_bytes += bytes;
  }
}

}  // namespace assay
