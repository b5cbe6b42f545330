// SPDX-License-Identifier: Apache-2.0
// Trees of small files that look like /sys and /proc of machines this one is not.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "topology/topology.hpp"

namespace assay::testing {

/// A directory of its own that goes away with the object.
class Tree {
 public:
  Tree() {
    std::string pattern = (std::filesystem::temp_directory_path() / "assay-tree-XXXXXX").string();
    root_ = mkdtemp(pattern.data());
  }
  ~Tree() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  const std::string& root() const { return root_; }

  Tree& file(const std::string& path, const std::string& text) {
    const std::filesystem::path full = root_ + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full, std::ios::binary) << text;
    return *this;
  }
  /// `target` is a path inside the tree.
  Tree& link(const std::string& path, const std::string& target) {
    const std::filesystem::path full = root_ + path;
    std::filesystem::create_directories(full.parent_path());
    std::filesystem::create_directories(root_ + target);
    std::filesystem::create_directory_symlink(root_ + target, full);
    return *this;
  }
  Tree& remove(const std::string& path) {
    std::filesystem::remove_all(root_ + path);
    return *this;
  }

 private:
  std::string root_;
};

/// Sockets x cores x threads; threads of a core are numbered apart, as Linux does on x86.
void add_cpus(Tree& tree, int sockets, int cores_per_socket, int threads_per_core);
/// A PCI function below a root port, both with their link's speed and width.
struct Link {
  std::string speed = "16.0 GT/s PCIe", max_speed = "16.0 GT/s PCIe";
  int width = 16, max_width = 16;
};
std::string add_pci(Tree& tree, const std::string& bus, const std::string& pci_class, const Link& link,
                    const Link& port);
/// A wired Ethernet interface on the function `bus`:00.0, which is added.
void add_ethernet(Tree& tree, const std::string& name, const std::string& bus, int mbit,
                  const std::string& state = "up");
/// An interface without a device behind it.
void add_virtual(Tree& tree, const std::string& name, const std::string& type, const std::string& state);
/// One port of an InfiniBand ("InfiniBand") or RoCE ("Ethernet") adapter on the function `bus`:00.0, which is
/// added.
void add_fabric(Tree& tree, const std::string& name, const std::string& bus, const std::string& link_layer,
                const std::string& rate, const std::string& state = "4: ACTIVE");

/// One SMBIOS structure: formatted part of `length` bytes after the header filled by the caller, then
/// strings.
std::string smbios_structure(unsigned char type, const std::string& formatted,
                             const std::vector<std::string>& strings);
struct Module {
  std::string slot, bank, serial = "S1", part = "M393", maker = "Acme";
  unsigned megabytes = 32768, speed = 4800, configured = 4400, data_width = 64;
};
std::string smbios_module(const Module& module);

/// A NIC made up in memory; up, without a known highest rate.
Nic made_nic(const std::string& name, const std::string& kind, const std::string& pci,
             double rate_bytes_per_s);
/// A node made up in memory: `cores` cores with `threads` hardware threads each, one socket, one NUMA domain.
Node made_node(const std::string& name, int cores, int threads = 1);

}  // namespace assay::testing
