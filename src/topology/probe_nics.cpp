// SPDX-License-Identifier: Apache-2.0
#include <net/if.h>

#include <cmath>

#include "base/system.hpp"
#include "topology/probe_parts.hpp"
#include "topology/sysfs.hpp"

namespace assay {
namespace {

constexpr std::int64_t kTypeLoopback = 772, kTypeInfiniband = 32;  // ARPHRD_* of /sys/class/net/*/type

// The nearest PCI function on the path of a device (a virtio interface is one level below its function).
std::string pci_address(const std::string& device) {
  std::string path = sysfs::real_path(device);
  while (!path.empty()) {
    const auto slash = path.rfind('/');
    if (slash == std::string::npos) break;
    const std::string name = path.substr(slash + 1);
    if (sysfs::is_pci_function(name)) return name;
    path.resize(slash);
  }
  return {};
}

int numa_of_device(const std::string& root, const std::string& device, const std::string& pci) {
  auto numa = read_integer(device + "/numa_node");
  if (!numa && !pci.empty()) numa = read_integer(root + "/sys/bus/pci/devices/" + pci + "/numa_node");
  return static_cast<int>(numa.value_or(-1));
}

std::string interface_state(const std::string& directory) {
  const auto flags = read_integer(directory + "/flags");
  if (flags && (*flags & IFF_UP) == 0) return "down";
  const std::string state = sysfs::line(directory + "/operstate");
  if (state != "unknown") return state;
  return read_integer(directory + "/carrier").value_or(0) == 1 ? "up" : state;
}

/// A virtual function of SR-IOV whose port is listed, too: a setting of that port. In a container or guest
/// that has the function alone it is the NIC.
bool is_function_of_listed(const std::string& device) {
  const std::string port = device + "/physfn";
  return !sysfs::entries(port + "/net").empty() || !sysfs::entries(port + "/infiniband").empty();
}

struct Found {
  Nic nic;
  std::string id;
};

Found interface(const std::string& root, const std::string& name) {
  const std::string directory = root + "/sys/class/net/" + name;
  const std::string device = directory + "/device";
  Nic nic;
  nic.name = name;
  const std::int64_t type = read_integer(directory + "/type").value_or(1);
  nic.kind = type == kTypeLoopback ? "loopback" : type == kTypeInfiniband ? "infiniband" : "ethernet";
  nic.virtual_device = !sysfs::exists(device) || is_function_of_listed(device);
  nic.id_source = "mac";
  nic.state = interface_state(directory);
  const double mbit = sysfs::number(directory + "/speed");
  // -1, 0 and 2^32-1 all mean "not known" to one driver or another.
  if (mbit > 0 && mbit < 4e9) nic.rate_bytes_per_s = mbit * 1e6 / 8;
  nic.driver = sysfs::link_name(device + "/driver");
  if (!nic.virtual_device) {
    nic.pci = pci_address(device);
    nic.numa = numa_of_device(root, device, nic.pci);
  }
  nic.bridge = sysfs::exists(directory + "/bridge");
  for (const std::string& entry : sysfs::entries(directory))
    if (entry.starts_with("lower_")) nic.lower.push_back(entry.substr(6));
  if (root.empty() && !nic.virtual_device) {
    EthtoolFacts facts = ethtool_facts(name);
    if (nic.driver.empty()) nic.driver = facts.driver;
    nic.firmware = facts.firmware;
    nic.max_rate_bytes_per_s = facts.max_rate_bytes_per_s;
  }
  return {nic, sysfs::line(directory + "/address")};
}

// "4: ACTIVE" -> up. The word is kept for the states between.
std::string port_state(const std::string& text) {
  const auto colon = text.find(": ");
  std::string word = colon == std::string::npos ? text : text.substr(colon + 2);
  for (char& c : word) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return word == "active" ? "up" : word;
}

// The interface on a port: RoCE tells it per address; IPoIB interfaces tell their port themselves.
std::string interface_of_port(const std::string& root, const std::string& device, const std::string& port) {
  const std::string base = root + "/sys/class/infiniband/" + device;
  const std::string told = sysfs::line(base + "/ports/" + port + "/gid_attrs/ndevs/0");
  if (!told.empty()) return told;
  const auto interfaces = sysfs::entries(base + "/device/net");
  for (const std::string& name : interfaces) {
    const auto dev_port = read_integer(base + "/device/net/" + name + "/dev_port");
    if (dev_port && std::to_string(*dev_port + 1) == port) return name;
  }
  return interfaces.size() == 1 ? interfaces.front() : std::string{};
}

Found fabric_port(const std::string& root, const std::string& device, const std::string& port) {
  const std::string base = root + "/sys/class/infiniband/" + device;
  const std::string directory = base + "/ports/" + port;
  Nic nic;
  nic.name = device + ":" + port;
  nic.kind = sysfs::line(directory + "/link_layer") == "Ethernet" ? "roce" : "infiniband";
  nic.state = port_state(sysfs::line(directory + "/state"));
  const double gbit = sysfs::number(directory + "/rate");  // "400 Gb/sec (4X NDR)"
  if (gbit > 0) nic.rate_bytes_per_s = gbit * 1e9 / 8;
  nic.firmware = sysfs::line(base + "/fw_ver");
  nic.driver = sysfs::link_name(base + "/device/driver");
  nic.virtual_device = !sysfs::exists(base + "/device") || is_function_of_listed(base + "/device");
  nic.pci = pci_address(base + "/device");
  nic.numa = numa_of_device(root, base + "/device", nic.pci);
  nic.netdev = interface_of_port(root, device, port);
  const std::string guid = sysfs::line(base + "/node_guid");
  if (guid.empty() || guid == "0000:0000:0000:0000") return {nic, ""};
  nic.id_source = "guid";
  return {nic, guid + ":" + port};
}

}  // namespace

void probe_nics(Node& node, const std::string& root) {
  const auto add = [&node](Found found) {
    node.nics.push_back(std::move(found.nic));
    node.nic_ids.push_back(std::move(found.id));
  };
  for (const std::string& device : sysfs::entries(root + "/sys/class/infiniband")) {
    for (const std::string& port : sysfs::numbered(root + "/sys/class/infiniband/" + device + "/ports", "")) {
      add(fabric_port(root, device, port));
    }
  }
  const auto addressed = addressed_interfaces(root);
  for (const std::string& name : sysfs::entries(root + "/sys/class/net")) {
    // /sys/class/net also holds files such as bonding_masters.
    if (!sysfs::exists(root + "/sys/class/net/" + name + "/type")) continue;
    Found found = interface(root, name);
    found.nic.addressed = !addressed || addressed->contains(name);
    add(std::move(found));
  }
}

}  // namespace assay
