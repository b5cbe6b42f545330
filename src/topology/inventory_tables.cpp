// SPDX-License-Identifier: Apache-2.0
#include "topology/inventory_tables.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "base/system.hpp"
#include "results/inventory_names.hpp"

namespace assay {
namespace {

namespace column = results::inventory;

// Builds a table row by row; every row sets the same columns.
class TableBuilder {
 public:
  void row(int entity) { table_.entity.push_back(entity); }
  void text(const char* column, const std::string& value) {
    auto& values = texts_[column];
    if (values == nullptr) values = &table_.text[column];
    values->push_back(value);
  }
  void number(const char* column, const char* unit, double value) {
    auto& values = numbers_[column];
    if (values == nullptr) {
      values = &table_.number[column];
      table_.unit[column] = unit;
    }
    values->push_back(value);
  }
  void count(const char* column, std::size_t value) { number(column, "count", static_cast<double>(value)); }
  /// Ends the builder.
  results::InventoryTable take() { return std::move(table_); }

 private:
  results::InventoryTable table_;
  // Names of columns are constants: a look by address makes no text for each cell. The same name at two
  // addresses is the same column.
  std::unordered_map<const char*, std::vector<std::string>*> texts_;
  std::unordered_map<const char*, std::vector<double>*> numbers_;
};

// The kernel's 0 cores or bytes for "nothing found" is not a number to compare.
double known(double value) { return value > 0 ? value : unsupported; }

void node_settings(TableBuilder& t, const Node& n) {
  t.text("cpu_model", n.cpu_model);
  t.text("microcode", n.microcode);
  t.text("smt", n.smt ? "on" : "off");
  t.text("governor", n.governor);
  t.text("scaling_driver", n.scaling_driver);
  t.text("kernel", n.kernel);
  t.text(results::inventory::kernel_options, performance_options(n.kernel_cmdline));
  t.text("kernel_cmdline_info", n.kernel_cmdline);
  t.text("os", n.os);
  t.text("board", n.board);
  t.text("bios", n.bios);
  t.text("hypervisor", n.hypervisor);
  t.text("iommu", n.iommu);
  t.text("acs", n.acs);
  t.text("numa_balancing", n.numa_balancing);
  t.text("transparent_hugepages", n.transparent_hugepages);
}

void node_row(TableBuilder& t, const Node& n, int entity, bool gpus) {
  t.row(entity);
  // What the node has: jobs may be given a part of it.
  if (gpus) t.count(column::gpus, n.whole_gpus() + n.gpus_hidden.size());
  node_settings(t, n);
  const auto nics = physical_nics(n);
  const auto up = std::count_if(nics.begin(), nics.end(), [](const Nic* nic) { return nic->state == "up"; });
  t.number("sockets", "count", known(n.sockets));
  t.number("cores", "count", known(n.cores));
  t.number("pus", "count", known(n.pus));
  t.number("numa_domains", "count", known(static_cast<double>(n.numa.size())));
  t.number(column::memory_bytes, "B", known(static_cast<double>(n.memory_bytes)));
  t.number("memory_available_bytes_info", "B", known(static_cast<double>(n.memory_available_bytes)));
  t.number(column::memory_bandwidth, "B/s", n.memory_bandwidth_bytes_per_s);
  t.number("last_level_cache_bytes", "B", known(static_cast<double>(n.llc_bytes_total())));
  t.number("dimms", "count", known(static_cast<double>(n.dimms.size())));
  t.count("nics", nics.size());
  t.count("nics_up_info", static_cast<std::size_t>(up));
  t.number("pci_links", "count", known(static_cast<double>(n.pci_links.size())));
  t.number("max_clock_hz", "Hz", n.max_clock_hz);
  t.number("cpu_quota_cores", "count", n.cpu_quota_cores);
  t.number("cgroup_limit_bytes_info", "B", n.cgroup_limit_bytes);
  t.number("cgroup_used_bytes_info", "B", n.cgroup_used_bytes);
}

void cpu_rows(TableBuilder& t, const Node& n, int node, const EntityTable& entities) {
  for (std::size_t socket = 0; socket < n.socket_pus.size(); ++socket) {
    const std::set<int> pus(n.socket_pus[socket].begin(), n.socket_pus[socket].end());
    const auto cores = std::count_if(n.core_pus.begin(), n.core_pus.end(), [&](const auto& core) {
      return !core.empty() && pus.contains(core.front());
    });
    t.row(entities.cpu(node, socket));
    t.text("model", n.cpu_model);
    t.count("cores", static_cast<std::size_t>(cores));
    t.count("pus", pus.size());
    t.text("cpus_info", format_cpu_list(n.socket_pus[socket]));
  }
}

void numa_rows(TableBuilder& t, const Node& n, int node, const EntityTable& entities) {
  // Memory behind a CXL link or of a GPU has no CPUs, and hwloc gives it those of the domains next to it.
  // Their own domain is the first that lists them (Node::numa_of).
  std::set<int> listed;
  for (const auto& domain : n.numa) {
    const auto own = std::count_if(domain.cpus.begin(), domain.cpus.end(),
                                   [&](int cpu) { return listed.insert(cpu).second; });
    t.row(entities.numa(node, domain.os_index));
    t.number("memory_bytes", "B", static_cast<double>(domain.memory_bytes));
    t.count("pus", static_cast<std::size_t>(own));
    t.text("cpus_info", format_cpu_list(domain.cpus));
  }
}

void dimm_rows(TableBuilder& t, const Node& n, int node, const EntityTable& entities) {
  for (std::size_t i = 0; i < n.dimms.size(); ++i) {
    const Dimm& dimm = n.dimms[i];
    t.row(entities.dimm(node, dimm.slot));
    t.text("slot", dimm.slot);
    t.number("size_bytes", "B", dimm.bytes);
    t.number("speed_mt_s", "1", dimm.speed_mt_s);
    t.number("configured_mt_s", "1", dimm.configured_mt_s);
    t.text("manufacturer_info", dimm.manufacturer);
    t.text("part_info", dimm.part);
    t.text("serial_info", i < n.dimm_serials.size() ? n.dimm_serials[i] : std::string());
  }
}

/// The physical NICs, and what the topology file says is one.
std::vector<const Nic*> listed_nics(const Node& n) {
  const auto physical = physical_nics(n);
  const std::set<const Nic*> known(physical.begin(), physical.end());
  std::vector<const Nic*> listed;
  for (const Nic& nic : n.nics)
    if (known.contains(&nic) || !nic.leaf.empty()) listed.push_back(&nic);
  return listed;
}

/// Columns that only --topology fills: a table has them when any NIC of the job is placed.
void nic_place(TableBuilder& t, const Nic& nic) {
  t.text("switch", nic.leaf);
  t.text("port", nic.leaf_port);
  t.text("rack", nic.rack);
  t.text("rail", nic.rail);
}

void nic_rows(TableBuilder& t, const Node& n, int node, const EntityTable& entities, bool placed) {
  for (const Nic* nic : listed_nics(n)) {
    if (placed) nic_place(t, *nic);
    t.row(entities.nic(node, nic->name));
    t.text("kind", nic->kind);
    t.text("state", nic->state);
    t.text("driver", nic->driver);
    t.text("firmware", nic->firmware);
    t.number(column::rate, "B/s", nic->rate_bytes_per_s);
    t.number("max_rate_bytes_per_s", "B/s", nic->max_rate_bytes_per_s);
    t.count("virtual_device", nic->virtual_device ? 1 : 0);
    t.number("numa_info", "count", nic->numa < 0 ? unsupported : nic->numa);
    t.text("id_info", n.id_of(*nic));
    t.text("pci_info", nic->pci);
    t.text("netdev_info", nic->netdev);
  }
}

// A link belongs to the NIC or GPU behind it where there is one, else to the node.
int owner_of(const PciLink& link, const Node& n, int node, const EntityTable& entities) {
  const auto at = [&](const auto& part) { return part.pci == link.address; };
  if (const auto nic = std::find_if(n.nics.begin(), n.nics.end(), at); nic != n.nics.end())
    return entities.nic(node, nic->name);
  if (const auto gpu = std::find_if(n.gpus.begin(), n.gpus.end(), at); gpu != n.gpus.end())
    return entities.gpu(node, static_cast<int>(gpu - n.gpus.begin()));
  return entities.node(node);
}

void pci_rows(TableBuilder& t, const Node& n, int node, const EntityTable& entities) {
  for (const auto& link : n.pci_links) {
    t.row(owner_of(link, n, node, entities));
    t.text("address_info", link.address);
    t.text("device_class", link.device_class);
    t.text("model", link.name);
    t.number(column::link_speed, "1", link.speed_gt_s);
    t.number(column::max_link_speed, "1", link.max_speed_gt_s);
    t.number(column::link_width, "count", link.width);
    t.number(column::max_link_width, "count", link.max_width);
    t.number("numa_info", "count", link.numa < 0 ? unsupported : link.numa);
    std::string near;
    for (const auto& name : link.near_nics) near += (near.empty() ? "" : ",") + name;
    t.text("near_nics_info", near);
    t.text("near_by_info", link.near_by);
  }
}

// A GPU that no rank drives has no CPUs; a host device is no GPU.
void gpu_columns(TableBuilder& t, const Node& node, int gpu, const char* kind) {
  const auto at = static_cast<std::size_t>(gpu);
  const Gpu& g = gpu < 0 ? Gpu() : node.gpus[at];
  t.text(column::device_kind, kind);
  t.text("uuid_info", gpu < 0 ? "" : node.gpu_uuid(at));
  t.text("serial_info", gpu < 0 ? "" : node.gpu_serial(at));
  t.text("pci_info", g.pci);
  t.text("part_number", g.part);
  t.text("vbios", g.vbios);
  t.text("compute_capability", g.compute);
  t.text("ecc", g.ecc);
  t.text("mig", g.mig);
  t.text("persistence", g.persistence);
  t.text("compute_mode", g.compute_mode);
  t.number("memory_bytes", "B", g.memory_bytes);
  t.number("sm_clock_max_hz", "Hz", g.sm_clock_max_hz);
  t.number("memory_clock_max_hz", "Hz", g.memory_clock_max_hz);
  t.number("memory_bus_width", "count", g.memory_bus_bits);
  t.number("shader_cores", "count", g.shader_cores);
  t.number("power_limit_w", "W", g.power_limit_w);
  t.number("power_limit_default_w", "W", g.power_limit_default_w);
  t.number("power_limit_max_w", "W", g.power_limit_max_w);
  t.number(column::gpu_link_generation, "1", g.pcie_generation);
  t.number(column::gpu_max_link_generation, "1", g.pcie_generation_max);
  t.number(column::gpu_link_width, "count", g.pcie_width);
  t.number(column::gpu_max_link_width, "count", g.pcie_width_max);
  t.number(column::nvlinks, "count", g.nvlinks);
  t.number(column::nvlinks_up, "count", g.nvlinks_up);
  t.number("nvlink_rate_bytes_per_s", "B/s", g.nvlink_rate_bytes_per_s);
  t.text(column::fabric, g.fabric);
  t.text("fabric_clique_info", g.fabric_clique);
  t.text(column::fabric_trouble, g.fabric_trouble);
  t.text(column::recovery_action, g.recovery_action);
  t.text(column::sram_threshold, g.sram_threshold);
}

void device_row(TableBuilder& t, int entity, const std::string& model, const RankPlace& place, int numa) {
  t.row(entity);
  t.text("model", model);
  t.count("threads", static_cast<std::size_t>(place.threads));
  t.count("shares_cpus", place.shares_cpus ? 1 : 0);
  t.text("cpus_info", format_cpu_list(place.cpus));
  t.text("mask_info", format_cpu_list(place.mask));
  t.number("numa_info", "count", numa < 0 ? unsupported : numa);
}

void device_rows(TableBuilder& t, const Topology& topology, const EntityTable& entities, bool gpus) {
  std::set<int> told;
  for (const auto& place : topology.ranks) {
    const Node& node = topology.nodes[static_cast<std::size_t>(place.node)];
    const Gpu* gpu = place.gpu < 0 ? nullptr : &node.gpus[static_cast<std::size_t>(place.gpu)];
    const int row = entities.device_of_rank(place.rank);
    told.insert(row);
    device_row(t, row, gpu == nullptr ? node.cpu_model : gpu->name, place,
               gpu == nullptr ? place.numa : gpu->numa);
    if (gpus)
      gpu_columns(t, node, place.gpu, gpu == nullptr ? "host" : place.shares_gpu ? "gpu share" : column::gpu);
  }
  for (std::size_t n = 0; n < topology.nodes.size(); ++n) {
    const Node& node = topology.nodes[n];
    for (std::size_t g = 0; g < node.gpus.size(); ++g) {
      const int row = entities.gpu(static_cast<int>(n), static_cast<int>(g));
      if (told.contains(row)) continue;
      RankPlace no_rank;
      no_rank.threads = 0;
      device_row(t, row, node.gpus[g].name, no_rank, node.gpus[g].numa);
      gpu_columns(t, node, static_cast<int>(g), column::gpu);
    }
  }
}

/// Of options of a kernel that change how fast or how evenly it runs.
constexpr std::array performance_prefixes = {"mitigations",
                                             "spectre",
                                             "nospectre",
                                             "spec_",
                                             "nospec",
                                             "pti",
                                             "nopti",
                                             "l1tf",
                                             "mds=",
                                             "tsx",
                                             "retbleed",
                                             "srbds",
                                             "isolcpus",
                                             "nohz",
                                             "rcu_",
                                             "nosmt",
                                             "maxcpus",
                                             "nr_cpus",
                                             "mem=",
                                             "memmap",
                                             "iommu",
                                             "intel_",
                                             "amd_",
                                             "idle",
                                             "cpuidle",
                                             "processor.",
                                             "haltpoll",
                                             "tsc",
                                             "clocksource",
                                             "hpet",
                                             "hugepage",
                                             "default_hugepagesz",
                                             "transparent_hugepage",
                                             "numa",
                                             "init_on_",
                                             "page_poison",
                                             "slub_debug",
                                             "pci=",
                                             "pcie_",
                                             "nmi_watchdog",
                                             "nowatchdog",
                                             "nosoftlockup",
                                             "skew_tick",
                                             "preempt",
                                             "audit",
                                             "selinux",
                                             "apparmor",
                                             "cgroup",
                                             "systemd.unified_cgroup_hierarchy",
                                             "nvme_core",
                                             "swiotlb",
                                             "mce"};

}  // namespace

std::string performance_options(const std::string& kernel_cmdline) {
  std::set<std::string> kept;
  std::istringstream words(kernel_cmdline);
  for (std::string word; words >> word && word != "--";) {
    if (std::any_of(performance_prefixes.begin(), performance_prefixes.end(),
                    [&](const char* prefix) { return word.starts_with(prefix); }))
      kept.insert(word);
  }
  std::string text;
  for (const std::string& word : kept) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::vector<const Nic*> physical_nics(const Node& node) {
  std::set<std::string> riding;
  // A port in software (Soft-RoCE) is not listed: the NIC that it sends through is.
  for (const auto& nic : node.nics)
    if (!nic.virtual_device) riding.insert(nic.netdev);
  std::vector<const Nic*> found;
  for (const auto& nic : node.nics) {
    if (!nic.virtual_device && nic.kind != "loopback" && !riding.contains(nic.name)) found.push_back(&nic);
  }
  return found;
}

std::map<std::string, results::InventoryTable> inventory_tables(const Topology& topology,
                                                                const EntityTable& entities) {
  std::map<std::string, TableBuilder> builders;
  const bool placed = std::any_of(topology.nodes.begin(), topology.nodes.end(), [](const Node& node) {
    return std::any_of(node.nics.begin(), node.nics.end(), [](const Nic& nic) { return !nic.leaf.empty(); });
  });
  const bool gpus = std::any_of(topology.nodes.begin(), topology.nodes.end(),
                                [](const Node& node) { return !node.gpus.empty(); });
  for (std::size_t i = 0; i < topology.nodes.size(); ++i) {
    const Node& node = topology.nodes[i];
    const int index = static_cast<int>(i);
    node_row(builders["node"], node, entities.node(index), gpus);
    cpu_rows(builders["cpu"], node, index, entities);
    numa_rows(builders["numa"], node, index, entities);
    dimm_rows(builders["dimm"], node, index, entities);
    nic_rows(builders["nic"], node, index, entities, placed);
    pci_rows(builders["pci"], node, index, entities);
  }
  device_rows(builders["device"], topology, entities, gpus);
  std::map<std::string, results::InventoryTable> tables;
  for (auto& [kind, builder] : builders) {
    if (auto table = builder.take(); !table.entity.empty()) tables[kind] = std::move(table);
  }
  return tables;
}

std::vector<results::EnvironmentRow> environment_rows(const Topology& topology) {
  std::vector<results::EnvironmentRow> rows;
  for (const Node& node : topology.nodes) {
    for (const auto& [key, value] : node.software) rows.push_back({node.hostname, key, value});
  }
  return rows;
}

}  // namespace assay
