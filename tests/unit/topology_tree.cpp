// SPDX-License-Identifier: Apache-2.0
#include "topology_tree.hpp"

namespace assay::testing {

void add_cpus(Tree& tree, int sockets, int cores_per_socket, int threads_per_core) {
  const int cores = sockets * cores_per_socket;
  for (int cpu = 0; cpu < cores * threads_per_core; ++cpu) {
    const std::string directory = "/sys/devices/system/cpu/cpu" + std::to_string(cpu);
    const int socket = (cpu % cores) / cores_per_socket;
    tree.file(directory + "/topology/physical_package_id", std::to_string(socket) + "\n");
    tree.file(directory + "/topology/core_id", std::to_string(cpu % cores_per_socket) + "\n");
    const std::string list =
        std::to_string(socket * cores_per_socket) + "-" + std::to_string((socket + 1) * cores_per_socket - 1);
    tree.file(directory + "/cache/index3/level", "3\n").file(directory + "/cache/index3/type", "Unified\n");
    tree.file(directory + "/cache/index3/size", "32768K\n")
        .file(directory + "/cache/index3/shared_cpu_list", list + "\n");
  }
  for (int socket = 0; socket < sockets; ++socket) {
    const std::string directory = "/sys/devices/system/node/node" + std::to_string(socket);
    std::string list;
    for (int thread = 0; thread < threads_per_core; ++thread) {
      const int first = thread * cores + socket * cores_per_socket;
      list += (thread > 0 ? "," : "") + std::to_string(first) + "-" +
              std::to_string(first + cores_per_socket - 1);
    }
    tree.file(directory + "/cpulist", list + "\n");
    const std::string number = std::to_string(socket);
    tree.file(directory + "/meminfo",
              "Node " + number + " MemTotal:       67108864 kB\nNode " + number + " MemFree: 1 kB\n");
  }
}

std::string add_pci(Tree& tree, const std::string& bus, const std::string& pci_class, const Link& link,
                    const Link& port) {
  const auto write = [&tree](const std::string& directory, const Link& l) {
    tree.file(directory + "/current_link_speed", l.speed + "\n")
        .file(directory + "/max_link_speed", l.max_speed + "\n");
    tree.file(directory + "/current_link_width", std::to_string(l.width) + "\n");
    tree.file(directory + "/max_link_width", std::to_string(l.max_width) + "\n");
  };
  const std::string bridge = "/sys/devices/pci0000:00/0000:00:" + bus + ".0";
  const std::string address = "0000:" + bus + ":00.0", function = bridge + "/" + address;
  tree.file(bridge + "/class", "0x060400\n").file(function + "/class", pci_class + "\n");
  tree.file(function + "/vendor", "0x15b3\n")
      .file(function + "/device", "0x1021\n")
      .file(function + "/numa_node", "1\n");
  write(bridge, port);
  write(function, link);
  tree.link("/sys/bus/pci/devices/0000:00:" + bus + ".0", bridge)
      .link("/sys/bus/pci/devices/" + address, function);
  return function;
}

void add_ethernet(Tree& tree, const std::string& name, const std::string& bus, int mbit,
                  const std::string& state) {
  const std::string function = add_pci(tree, bus, "0x020000", {}, {});
  const std::string net = "/sys/class/net/" + name;
  tree.file(net + "/type", "1\n")
      .file(net + "/address", "aa:bb:cc:00:00:" + bus + "\n")
      .file(net + "/flags", "0x1003\n");
  tree.file(net + "/operstate", state + "\n").file(net + "/speed", std::to_string(mbit) + "\n");
  tree.link(net + "/device", function).link(function + "/driver", "/sys/bus/pci/drivers/ice");
  for (const char* counter : {"rx_bytes", "tx_bytes", "rx_errors", "tx_errors", "rx_crc_errors"}) {
    tree.file(net + "/statistics/" + counter, "0\n");
  }
  tree.file(net + "/carrier_changes", "1\n");
}

void add_virtual(Tree& tree, const std::string& name, const std::string& type, const std::string& state) {
  const std::string net = "/sys/class/net/" + name;
  tree.file(net + "/type", type + "\n")
      .file(net + "/address", "00:00:00:00:00:00\n")
      .file(net + "/flags", "0x9\n");
  tree.file(net + "/operstate", state + "\n").file(net + "/carrier", "1\n");
  tree.file(net + "/statistics/rx_bytes", "10\n").file(net + "/statistics/tx_bytes", "10\n");
  tree.file(net + "/statistics/rx_errors", "0\n");
}

void add_fabric(Tree& tree, const std::string& name, const std::string& bus, const std::string& link_layer,
                const std::string& rate, const std::string& state) {
  const std::string function = add_pci(tree, bus, "0x020700", {}, {});
  const std::string base = "/sys/class/infiniband/" + name, port = base + "/ports/1";
  tree.file(base + "/node_guid", "0c42:a103:0000:00" + bus + "\n").file(base + "/fw_ver", "28.39.1002\n");
  tree.file(port + "/link_layer", link_layer + "\n")
      .file(port + "/state", state + "\n")
      .file(port + "/rate", rate + "\n");
  tree.link(base + "/device", function).link(function + "/driver", "/sys/bus/pci/drivers/mlx5_core");
  for (const char* counter : {"port_rcv_data", "port_xmit_data", "port_rcv_errors", "symbol_error",
                              "link_downed", "link_error_recovery", "local_link_integrity_errors"}) {
    tree.file(port + "/counters/" + counter, "0\n");
  }
}

std::string smbios_structure(unsigned char type, const std::string& formatted,
                             const std::vector<std::string>& strings) {
  std::string bytes{static_cast<char>(type), static_cast<char>(formatted.size() + 4), '\x11', '\x00'};
  bytes += formatted;
  for (const std::string& text : strings)
    bytes += (text.empty() ? " " : text) + '\0';  // an empty one would end the list
  return bytes + (strings.empty() ? std::string(2, '\0') : std::string(1, '\0'));
}

std::string smbios_module(const Module& m) {
  std::string f(0x28 - 4, '\0');  // SMBIOS 3.2 without the extended speeds
  const auto put = [&f](std::size_t offset, unsigned value, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) f[offset - 4 + i] = static_cast<char>((value >> (8 * i)) & 0xff);
  };
  put(0x0a, m.data_width, 2);
  put(0x0c, m.megabytes >= 0x7fff ? 0x7fff : m.megabytes, 2);
  if (m.megabytes >= 0x7fff) put(0x1c, m.megabytes, 4);
  put(0x10, 1, 1), put(0x11, 2, 1), put(0x17, 3, 1), put(0x18, 4, 1), put(0x1a, 5, 1);
  put(0x15, m.speed, 2), put(0x20, m.configured, 2);
  return smbios_structure(17, f, {m.slot, m.bank, m.maker, m.serial, m.part});
}

Nic made_nic(const std::string& name, const std::string& kind, const std::string& pci,
             double rate_bytes_per_s) {
  Nic nic;
  nic.name = name, nic.kind = kind, nic.pci = pci, nic.state = "up";
  nic.id_source = "guid";
  nic.rate_bytes_per_s = rate_bytes_per_s;
  return nic;
}

Node made_node(const std::string& name, int cores, int threads) {
  Node node;
  node.hostname = node.id = name;
  node.id_source = "hostname";
  node.sockets = 1, node.cores = cores, node.pus = cores * threads;
  std::vector<int> all;
  for (int core = 0; core < cores; ++core) {
    std::vector<int> pus;
    for (int thread = 0; thread < threads; ++thread) pus.push_back(core + thread * cores);
    all.insert(all.end(), pus.begin(), pus.end());
    node.core_pus.push_back(std::move(pus));
  }
  node.socket_pus = {all};
  node.numa.push_back({0, all, std::uint64_t{64} << 30});
  node.memory_bytes = std::uint64_t{64} << 30;
  return node;
}

}  // namespace assay::testing
