// SPDX-License-Identifier: Apache-2.0
#include "made_cluster.hpp"

#include <fmt/format.h>

#include "topology/discover.hpp"
#include "topology/gpu_place.hpp"

namespace assay::bench {

std::vector<int> range(int begin, int count, int step) {
  std::vector<int> all;
  for (int i = 0; i < count; ++i) all.push_back(begin + i * step);
  return all;
}

std::string node_name(int node) {
  constexpr int first = 9980;
  return fmt::format("node{:05}", first + node);
}

namespace {

/// Two sockets of 64 cores with two threads each, a cache for each eight, ten NICs, 32 DIMMs.
Node large_node() {
  constexpr int cores = 128;
  Node node;
  node.id_source = "machine-id";
  node.cpu_model = "AMD EPYC 9554 64-Core Processor", node.cpu_vendor = "AuthenticAMD";
  node.kernel = "6.1.0-18-amd64", node.kernel_cmdline = "BOOT_IMAGE=/vmlinuz root=/dev/nfs ro quiet iommu=pt";
  node.os = "Debian GNU/Linux 12 (bookworm)", node.board = "Example H13DSG", node.bios = "1.4a";
  node.sockets = 2, node.cores = cores, node.pus = 2 * cores, node.smt = true;
  for (int core = 0; core < cores; ++core) {
    node.core_pus.push_back({core, core + cores});
    node.caches.push_back({2, 1 << 20, {core, core + cores}});
  }
  for (int half = 0; half < 2; ++half) {
    auto pus = range(half * 64, 64), more = range(cores + half * 64, 64);
    pus.insert(pus.end(), more.begin(), more.end());
    node.numa.push_back({half, pus, std::uint64_t{768} << 30});
    node.socket_pus.push_back(std::move(pus));
  }
  for (int eighth = 0; eighth < cores / 8; ++eighth) {
    auto pus = range(eighth * 8, 8), more = range(cores + eighth * 8, 8);
    pus.insert(pus.end(), more.begin(), more.end());
    node.caches.push_back({3, 32 << 20, std::move(pus)});
  }
  node.memory_bytes = std::uint64_t{1536} << 30, node.memory_available_bytes = std::uint64_t{1500} << 30;
  for (int i = 0; i < 10; ++i) {
    Nic nic;
    nic.name = fmt::format("mlx5_{}:1", i), nic.kind = "infiniband", nic.id_source = "guid", nic.state = "up";
    nic.driver = "mlx5_core", nic.firmware = "28.39.1002", nic.pci = fmt::format("0000:{:02x}:00.0", 16 + i);
    nic.rate_bytes_per_s = nic.max_rate_bytes_per_s = 5e10, nic.numa = i / 5;
    node.nics.push_back(nic);
    node.pci_links.push_back({nic.pci, "network", "ConnectX-7", 32, 32, 16, 16, i / 5, {}, ""});
  }
  for (int i = 0; i < 32; ++i)
    node.dimms.push_back(
        {fmt::format("P{}-DIMM{}", i / 16, i % 16), "M321R8GA0BB0-CQKZJ", "Samsung", 51e9, 4800, 4800});
  for (int i = 0; i < 12; ++i) node.software.edit()[fmt::format("library{}", i)] = "4.1.4 (Debian 12)";
  return node;
}

/// As NVML describes an H100 behind NVLink switches.
Gpu large_gpu(int index) {
  Gpu gpu;
  gpu.name = "NVIDIA H100 80GB HBM3", gpu.vbios = "96.00.74.00.01", gpu.part = "692-2G520-0200-000";
  gpu.pci = fmt::format("0000:{:02x}:00.0", 23 + 16 * index), gpu.compute = "9.0", gpu.numa = index / 4;
  gpu.ecc = "on", gpu.mig = "off", gpu.persistence = "on", gpu.compute_mode = "default";
  gpu.memory_bytes = 85520809984, gpu.sm_clock_max_hz = 1.98e9, gpu.memory_clock_max_hz = 2.619e9;
  gpu.memory_bus_bits = 5120, gpu.shader_cores = 16896;
  gpu.power_limit_w = gpu.power_limit_default_w = gpu.power_limit_max_w = 700;
  gpu.pcie_generation = gpu.pcie_generation_max = 5, gpu.pcie_width = gpu.pcie_width_max = 16;
  gpu.nvlinks = gpu.nvlinks_up = 18, gpu.nvlink_rate_bytes_per_s = 26.5625e9;
  gpu.nvlink_ends.assign(18, "switch");
  gpu.fabric = "completed", gpu.fabric_clique = "00000000000000000000000000000000/0";
  gpu.recovery_action = "none", gpu.sram_threshold = "kept";
  return gpu;
}

std::string gpu_uuid(int node, int index) {
  return fmt::format("GPU-{:08x}-{:04x}-4000-8000-{:012x}", node, index, 7 * node + index);
}

Node numbered(Node node, int number) {
  node.hostname = node_name(number);
  node.id = fmt::format("{:016x}{:016x}", number, 7 * number);
  node.memory_available_bytes -= static_cast<std::uint64_t>(number) << 12;
  for (std::size_t i = 0; i < node.nics.size(); ++i)
    node.nic_ids.push_back(fmt::format("{:08x}:{:04x}", number, i));
  for (std::size_t i = 0; i < node.dimms.size(); ++i)
    node.dimm_serials.push_back(fmt::format("{:06X}{:02X}", number, i));
  for (int i = 0; i < static_cast<int>(node.gpus.size()); ++i) {
    node.gpu_uuids.push_back(gpu_uuid(number, i));
    node.gpu_serials.push_back(fmt::format("165{:07}{:03}", number, i));
  }
  return node;
}

}  // namespace

Gathered gathered(int nodes, bool gpus) {
  Node like = large_node();
  for (int i = 0; gpus && i < local_ranks; ++i) like.gpus.push_back(large_gpu(i));
  const Json first = to_json(numbered(like, 0));
  const auto description = [&](int node) {
    return node == 0 ? first.dump() : differences(to_json(numbered(like, node)), first).dump();
  };
  Gathered all;
  for (int node = 0; node < nodes; ++node)
    for (int local = 0; local < local_ranks; ++local) {
      RankFacts facts{
          node_name(node), node * local_ranks, local, range(local * 16, 16), 1000 + local, "made", {}};
      auto threads = range(128 + local * 16, 16);
      facts.mask.edit().insert(facts.mask.end(), threads.begin(), threads.end());
      facts.device = gpus ? "cuda" : "host";
      if (gpus) {
        facts.gpu = gpu_uuid(node, local), facts.compute = "9.0";
        facts.gpu_free_bytes = 84e9, facts.gpu_sweep_rate = 3e12;
      }
      all.places.push_back(to_text(facts));
      all.nodes.push_back(local == 0 ? description(node) : std::string());
    }
  return all;
}

std::vector<std::string> offered(int nodes) {
  std::vector<std::string> texts;
  for (int node = 0; node < nodes; ++node) {
    std::vector<std::string> uuids;
    for (int i = 0; i < local_ranks; ++i) uuids.push_back(gpu_uuid(node, i));
    texts.insert(texts.end(), local_ranks,
                 to_text(OfferedDevices{node_name(node), unsupported, {{uuids, {}, true}}}));
  }
  return texts;
}

Config made_config(const std::vector<std::unique_ptr<Suite>>& suites, const std::string& level,
                   const std::string& out, const std::string& cases,
                   const std::map<std::string, std::string>& more) {
  const std::map<std::string, std::string> given = {
      {"level", level}, {"out", out}, {"seed", "7"}, {"max-file", "100TiB"}, {"progress", "never"}};
  OptionValues values;
  std::vector<std::string> names;
  for (const OptionSpec& option : run_options()) {
    const auto at = given.find(option.name);
    if (option.name == "cases" && !cases.empty())
      values.set(option, {cases});
    else
      values.set(option,
                 at == given.end() ? std::vector<std::string>() : std::vector<std::string>{at->second});
  }
  for (const auto& suite : suites) {
    for (const OptionSpec& option : suite->options()) {
      const auto at = more.find(option.name);
      values.set(option,
                 at == more.end() ? std::vector<std::string>() : std::vector<std::string>{at->second});
    }
    if (!suite->hidden()) names.emplace_back(suite->name());
  }
  return make_config(values, names, {"selftest"});
}

}  // namespace assay::bench
