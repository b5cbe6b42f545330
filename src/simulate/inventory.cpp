// SPDX-License-Identifier: Apache-2.0
// The parts of a synthetic cluster as /entities and /inventory hold them.
#include <fmt/format.h>

#include "simulate/machine.hpp"

namespace assay::simulate {
namespace {

constexpr double nic_rate_bytes_per_s = 5e10, memory_bytes = 1099511627776.0;

std::string leaf_name(std::int64_t leaf) { return fmt::format("L{}", leaf); }

}  // namespace

std::vector<results::Entity> Machine::entities() const {
  std::vector<results::Entity> all;
  all.reserve(static_cast<std::size_t>(1 + spec_.leaves + nodes() + nics() + devices()));
  // The seed makes the machine: runs of one machine have equal ids, other machines have others.
  const std::string root = fmt::format("simulated-{:x}", spec_.seed);
  all.push_back({"cluster", "cluster", "path", "cluster", -1, -1});
  for (std::int64_t l = 0; l < spec_.leaves; ++l)
    all.push_back({"switch", root + "/" + leaf_name(l), "path", "switch:" + leaf_name(l), 0, -1});
  for (std::int64_t n = 0; n < nodes(); ++n) {
    const std::string name = node_name(n), id = root + "/" + name;
    const std::int32_t row = node_row(n);
    all.push_back({"node", id, "hostname", name, 0, -1});
    for (std::int64_t k = 0; k < spec_.nics_per_node; ++k) {
      const std::string part = fmt::format("/nic{}", k);
      all.push_back({"nic", id + part, "path", name + part, row, -1});
    }
    for (std::int64_t d = 0; d < spec_.devices_per_node; ++d) {
      const std::string part = fmt::format("/gpu{}", d);
      all.push_back({"device", id + part, "path", name + part, row,
                     static_cast<std::int32_t>(n * spec_.devices_per_node + d)});
    }
  }
  return all;
}

std::map<std::string, results::InventoryTable> Machine::inventory() const {
  std::map<std::string, results::InventoryTable> tables;
  const auto lacks = [&](std::int64_t n, const char* what) {
    for (const Fault& fault : spec_.faults)
      if (fault.kind == Kind::missing && fault.what == what && fault.nodes.contains(n, node_name(n)))
        return 1.0;
    return 0.0;
  };
  auto& node = tables["node"];
  node.unit = {{"memory_bytes", "B"}, {"nics", "count"}, {"gpus", "count"}};
  for (std::int64_t n = 0; n < nodes(); ++n) {
    node.entity.push_back(node_row(n));
    node.text["cpu_model"].emplace_back("simulated");
    if (spec_.nodes_per_chassis > 0)
      node.text["chassis_info"].push_back(fmt::format("c{}", n / spec_.nodes_per_chassis));
    node.number["memory_bytes"].push_back(memory_bytes *
                                          (1 - lacks(n, parts_of_a_node()[memory_part].c_str()) / 16));
    node.number["nics"].push_back(static_cast<double>(spec_.nics_per_node) - lacks(n, "nic"));
    node.number["gpus"].push_back(static_cast<double>(spec_.devices_per_node) - lacks(n, "device"));
  }
  auto& nic = tables["nic"];
  nic.unit = {{"rate_bytes_per_s", "B/s"}, {"virtual_device", "count"}};
  for (std::int64_t k = 0; k < nics(); ++k) {
    nic.entity.push_back(nic_row(k));
    nic.text["kind"].emplace_back("infiniband");
    nic.text["state"].emplace_back("up");
    nic.text["driver"].emplace_back("simulated");
    if (spec_.leaves > 0) nic.text["switch"].push_back(leaf_name(leaf_of_nic(k)));
    if (spec_.leaves > 0) nic.text["rail"].push_back(std::to_string(k % spec_.nics_per_node));
    nic.number["rate_bytes_per_s"].push_back(nic_rate_bytes_per_s);
    nic.number["virtual_device"].push_back(0);
  }
  auto& device = tables["device"];
  for (std::int64_t d = 0; d < devices(); ++d) {
    device.entity.push_back(device_row(d));
    const bool second = spec_.population == Population::models && second_kind(node_of_device(d));
    device.text["model"].emplace_back(second ? "simulated B" : "simulated A");
  }
  return tables;
}

}  // namespace assay::simulate
