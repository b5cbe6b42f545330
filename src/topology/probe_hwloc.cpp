// SPDX-License-Identifier: Apache-2.0
#include <hwloc.h>

#include <memory>
#include <type_traits>

#include "topology/probe_parts.hpp"
#include "topology/sysfs.hpp"

namespace assay {
namespace {

struct DestroyTopology {
  void operator()(hwloc_topology_t topology) const noexcept { hwloc_topology_destroy(topology); }
};
using HwlocTopology = std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, DestroyTopology>;

HwlocTopology load() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return nullptr;
  HwlocTopology topology(raw);
  // The whole machine, not only what the cgroup allows: missing cores are to be seen.
  if (hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) != 0) return nullptr;
  if (hwloc_topology_load(raw) != 0) return nullptr;
  return topology;
}

std::vector<int> cpus_of(hwloc_const_bitmap_t set) {
  std::vector<int> cpus;
  if (set == nullptr || hwloc_bitmap_weight(set) < 0) return cpus;
  for (int cpu = hwloc_bitmap_first(set); cpu >= 0; cpu = hwloc_bitmap_next(set, cpu)) cpus.push_back(cpu);
  return cpus;
}

std::vector<hwloc_obj_t> objects(hwloc_topology_t topology, hwloc_obj_type_t type) {
  std::vector<hwloc_obj_t> found;
  const int count = hwloc_get_nbobjs_by_type(topology, type);
  for (int i = 0; i < count; ++i)
    found.push_back(hwloc_get_obj_by_type(topology, type, static_cast<unsigned>(i)));
  return found;
}

void fill_caches(Node& node, hwloc_topology_t topology) {
  for (const auto type : {HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L4CACHE, HWLOC_OBJ_L5CACHE}) {
    for (const hwloc_obj_t cache : objects(topology, type)) {
      if (cache->attr == nullptr || cache->attr->cache.size == 0) continue;
      node.caches.push_back(
          {static_cast<int>(cache->attr->cache.depth), cache->attr->cache.size, cpus_of(cache->cpuset)});
    }
  }
}

}  // namespace

bool probe_hwloc(Node& node) {
  const HwlocTopology owner = load();
  if (!owner) return false;
  const hwloc_topology_t topology = owner.get();
  for (const hwloc_obj_t package : objects(topology, HWLOC_OBJ_PACKAGE))
    node.socket_pus.push_back(cpus_of(package->cpuset));
  for (const hwloc_obj_t core : objects(topology, HWLOC_OBJ_CORE))
    node.core_pus.push_back(cpus_of(core->cpuset));
  const auto pus = objects(topology, HWLOC_OBJ_PU);
  node.pus = static_cast<int>(pus.size());
  // Some virtual machines describe neither cores nor packages: a hardware thread is then a core, the machine
  // one package.
  if (node.core_pus.empty()) {
    for (const hwloc_obj_t pu : pus) node.core_pus.push_back(cpus_of(pu->cpuset));
  }
  if (node.socket_pus.empty()) node.socket_pus.push_back(cpus_of(hwloc_get_root_obj(topology)->cpuset));
  node.sockets = static_cast<int>(node.socket_pus.size());
  node.cores = static_cast<int>(node.core_pus.size());
  for (const hwloc_obj_t domain : objects(topology, HWLOC_OBJ_NUMANODE)) {
    node.numa.push_back(
        {static_cast<int>(domain->os_index), cpus_of(domain->cpuset), domain->attr->numanode.local_memory});
    node.memory_bytes += domain->attr->numanode.local_memory;
  }
  fill_caches(node, topology);
  node.allowed_cpus = cpus_of(hwloc_topology_get_allowed_cpuset(topology));
  const hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
  if (package != nullptr) {
    const char* model = hwloc_obj_get_info_by_name(package, "CPUModel");
    const char* vendor = hwloc_obj_get_info_by_name(package, "CPUVendor");
    if (model != nullptr) node.cpu_model = sysfs::clean(model);
    if (vendor != nullptr) node.cpu_vendor = sysfs::clean(vendor);
  }
  return true;
}

}  // namespace assay
