// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "base/error.hpp"
#include "topology/topology.hpp"

namespace assay {
namespace {

// The fields of each type are listed once, for both directions: `visit` hands each to the archive by name.
template <typename Self, typename Archive>
void visit_numa(Self& d, Archive& a) {
  a("os_index", d.os_index), a("cpus", d.cpus), a("memory_bytes", d.memory_bytes);
}
template <typename Self, typename Archive>
void visit_cache(Self& c, Archive& a) {
  a("level", c.level), a("bytes", c.bytes), a("cpus", c.cpus);
}
template <typename Self, typename Archive>
void visit_nic(Self& n, Archive& a) {
  a("name", n.name), a("kind", n.kind), a("id_source", n.id_source), a("state", n.state);
  a("driver", n.driver), a("firmware", n.firmware), a("pci", n.pci), a("netdev", n.netdev);
  a("rate_bytes_per_s", n.rate_bytes_per_s), a("max_rate_bytes_per_s", n.max_rate_bytes_per_s);
  a("numa", n.numa), a("virtual_device", n.virtual_device);
  a("addressed", n.addressed), a("bridge", n.bridge), a("lower", n.lower);
}
template <typename Self, typename Archive>
void visit_link(Self& l, Archive& a) {
  a("address", l.address), a("device_class", l.device_class), a("name", l.name);
  a("speed_gt_s", l.speed_gt_s), a("max_speed_gt_s", l.max_speed_gt_s);
  a("width", l.width), a("max_width", l.max_width);
  a("numa", l.numa), a("near_nics", l.near_nics), a("near_by", l.near_by);
}
template <typename Self, typename Archive>
void visit_dimm(Self& d, Archive& a) {
  a("slot", d.slot), a("part", d.part), a("manufacturer", d.manufacturer);
  a("bytes", d.bytes), a("speed_mt_s", d.speed_mt_s), a("configured_mt_s", d.configured_mt_s);
}
template <typename Self, typename Archive>
void visit_gpu(Self& g, Archive& a) {
  a("number", g.number), a("name", g.name), a("vbios", g.vbios), a("part", g.part);
  a("pci", g.pci), a("compute", g.compute), a("ecc", g.ecc), a("mig", g.mig), a("persistence", g.persistence);
  a("compute_mode", g.compute_mode), a("memory_bytes", g.memory_bytes);
  a("sm_clock_max_hz", g.sm_clock_max_hz), a("memory_clock_max_hz", g.memory_clock_max_hz);
  a("memory_bus_bits", g.memory_bus_bits), a("shader_cores", g.shader_cores);
  a("power_limit_w", g.power_limit_w), a("power_limit_default_w", g.power_limit_default_w);
  a("power_limit_max_w", g.power_limit_max_w), a("pcie_generation", g.pcie_generation);
  a("pcie_generation_max", g.pcie_generation_max), a("pcie_width", g.pcie_width);
  a("pcie_width_max", g.pcie_width_max), a("nvlinks", g.nvlinks), a("nvlinks_up", g.nvlinks_up);
  a("nvlink_rate_bytes_per_s", g.nvlink_rate_bytes_per_s), a("nvlink_ends", g.nvlink_ends);
  a("fabric", g.fabric), a("fabric_clique", g.fabric_clique), a("fabric_trouble", g.fabric_trouble);
  a("recovery_action", g.recovery_action), a("sram_threshold", g.sram_threshold), a("numa", g.numa);
}
template <typename Self, typename Archive>
void visit_node(Self& n, Archive& a) {
  a("hostname", n.hostname), a("id", n.id), a("id_source", n.id_source);
  a("cpu_model", n.cpu_model), a("cpu_vendor", n.cpu_vendor), a("microcode", n.microcode),
      a("kernel", n.kernel);
  a("kernel_cmdline", n.kernel_cmdline), a("os", n.os), a("governor", n.governor), a("board", n.board);
  a("bios", n.bios), a("hypervisor", n.hypervisor), a("iommu", n.iommu), a("acs", n.acs);
  a("numa_balancing", n.numa_balancing), a("transparent_hugepages", n.transparent_hugepages);
  a("scaling_driver", n.scaling_driver), a("sockets", n.sockets), a("cores", n.cores), a("pus", n.pus);
  a("smt", n.smt), a("max_clock_hz", n.max_clock_hz), a("core_pus", n.core_pus),
      a("socket_pus", n.socket_pus);
  a("allowed_cpus", n.allowed_cpus), a("numa", n.numa), a("caches", n.caches), a("nics", n.nics);
  a("pci_links", n.pci_links), a("dimms", n.dimms), a("nic_ids", n.nic_ids),
      a("dimm_serials", n.dimm_serials);
  a("gpus", n.gpus), a("gpu_uuids", n.gpu_uuids), a("gpu_serials", n.gpu_serials);
  a("gpus_lost", n.gpus_lost), a("gpus_hidden", n.gpus_hidden), a("gpu_trouble", n.gpu_trouble);
  a("memory_bytes", n.memory_bytes);
  a("memory_available_bytes", n.memory_available_bytes), a("cgroup_limit_bytes", n.cgroup_limit_bytes);
  a("cgroup_used_bytes", n.cgroup_used_bytes), a("cpu_quota_cores", n.cpu_quota_cores);
  a("memory_bandwidth_bytes_per_s", n.memory_bandwidth_bytes_per_s), a("software", n.software);
}

template <typename T, typename Archive>
void visit(T& value, Archive& a) {
  using Plain = std::remove_const_t<T>;
  if constexpr (std::is_same_v<Plain, NumaDomain>)
    visit_numa(value, a);
  else if constexpr (std::is_same_v<Plain, Cache>)
    visit_cache(value, a);
  else if constexpr (std::is_same_v<Plain, Nic>)
    visit_nic(value, a);
  else if constexpr (std::is_same_v<Plain, PciLink>)
    visit_link(value, a);
  else if constexpr (std::is_same_v<Plain, Dimm>)
    visit_dimm(value, a);
  else if constexpr (std::is_same_v<Plain, Gpu>)
    visit_gpu(value, a);
  else
    visit_node(value, a);
}

template <typename T>
inline constexpr bool is_record =
    std::is_same_v<T, NumaDomain> || std::is_same_v<T, Cache> || std::is_same_v<T, Nic> ||
    std::is_same_v<T, PciLink> || std::is_same_v<T, Dimm> || std::is_same_v<T, Gpu> ||
    std::is_same_v<T, Node>;

template <typename T>
struct is_record_list : std::false_type {};
template <typename T>
struct is_record_list<std::vector<T>> : std::bool_constant<is_record<T>> {};

struct Saver {
  Json json = Json::object();

  template <typename T>
  void operator()(const char* name, const Shared<T>& value) {
    (*this)(name, value.get());
  }
  template <typename T>
  void operator()(const char* name, const T& value) {
    if constexpr (is_record_list<T>::value) {
      Json list = Json::array();
      for (const auto& item : value) {
        Saver saver;
        visit(item, saver);
        list.push_back(std::move(saver.json));
      }
      json[name] = std::move(list);
    } else if constexpr (std::is_same_v<T, double>) {
      json[name] = std::isnan(value) ? Json() : Json(value);
    } else {
      json[name] = value;
    }
  }
};

/// Fields that are not told keep their value where `partial`.
struct Loader {
  const Json& json;
  bool partial = false;
  std::map<std::string, std::shared_ptr<const void>>* lists = nullptr;  ///< known ones; null: none

  template <typename T>
  void operator()(const char* name, Shared<T>& value) {
    if (partial && !json.contains(name)) return;
    if (lists == nullptr) return (*this)(name, value.edit());
    auto& known = (*lists)[name + json.at(name).dump()];
    if (!known) {
      (*this)(name, value.edit());
      known = std::make_shared<const Shared<T>>(value);
    }
    value = *static_cast<const Shared<T>*>(known.get());
  }
  template <typename T>
  void operator()(const char* name, T& value) {
    if (partial && !json.contains(name)) return;
    const Json& stored = json.at(name);
    if constexpr (is_record_list<T>::value) {
      const std::size_t known = partial ? std::min(value.size(), stored.size()) : 0;
      value.resize(known);
      value.resize(stored.size());
      for (std::size_t i = 0; i < stored.size(); ++i) {
        Loader loader{stored.at(i), i < known};
        visit(value[i], loader);
      }
    } else if constexpr (std::is_same_v<T, double>) {
      value = stored.is_null() ? unsupported : stored.get<double>();
    } else {
      stored.get_to(value);
    }
  }
};

Node loaded(Node node, Loader loader) {
  try {
    visit(node, loader);
  } catch (const Json::exception& error) {
    throw Error(ErrorKind::data, std::string("description of a node: ") + error.what());
  }
  return node;
}

}  // namespace

Json to_json(const Node& node) {
  Saver saver;
  visit(node, saver);
  return std::move(saver.json);
}

Node node_from_json(const Json& json) { return loaded({}, {json}); }

Json differences(const Json& json, const Json& like) {
  Json found = Json::object();
  for (const auto& [name, value] : json.items()) {
    const auto other = like.find(name);
    if (other != like.end() && *other == value) continue;
    const bool records = value.is_array() && !value.empty() && value.front().is_object();
    if (!records || other == like.end()) {
      found[name] = value;
      continue;
    }
    Json& list = found[name] = Json::array();
    for (std::size_t i = 0; i < value.size(); ++i)
      list.push_back(i < other->size() ? differences(value[i], (*other)[i]) : value[i]);
  }
  return found;
}

Node with_differences(const Node& like, const Json& json) { return loaded(like, {json, true}); }

Node NodeReader::read(const Json& differences) { return loaded(like_, {differences, true, &lists_}); }

}  // namespace assay
