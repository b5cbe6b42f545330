// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "base/system.hpp"
#include "topology/probe_parts.hpp"
#include "topology/sysfs.hpp"

namespace assay {
namespace {

// Class code of PCI Code and ID Assignment, first two bytes: which links are worth a row.
std::string class_name(std::int64_t code) {
  switch ((code >> 16) & 0xff) {
    case 0x02: return "network";
    case 0x03: return "display";
    case 0x12: return "accelerator";
    default: break;
  }
  const std::int64_t two = (code >> 8) & 0xffff;
  return two == 0x0108 ? "nvme" : two == 0x0604 ? "bridge" : "";
}

// Number of PCI functions above this one on the way to its root complex, which may be inside of another one
// ("pci10000:00" of Intel's VMD, itself a function).
int depth(const std::string& real_path) {
  int count = -1;
  for (std::size_t start = 0; start < real_path.size();) {
    const auto slash = std::min(real_path.find('/', start), real_path.size());
    const std::string name = real_path.substr(start, slash - start);
    if (name.starts_with("pci") && sysfs::is_pci_function(name.substr(3) + ":00.0")) count = -1;
    if (sysfs::is_pci_function(name)) ++count;
    start = slash + 1;
  }
  return count;
}

bool has_children(const std::string& directory) {
  const auto names = sysfs::entries(directory);
  return std::any_of(names.begin(), names.end(), sysfs::is_pci_function);
}

// Widths of 0, 63 and 255 and speeds of "Unknown" are a driver's way to say nothing.
double width(const std::string& path) {
  const double value = sysfs::number(path);
  return value >= 1 && value <= 32 ? value : unsupported;
}

double speed(const std::string& path) {
  const double value = sysfs::number(path);
  return value > 0 ? value : unsupported;
}

double smaller(double a, double b) { return std::isnan(a) ? b : std::isnan(b) ? a : std::min(a, b); }

// A link can do what both of its ends can: a x16 card in a x8 slot is not degraded at x8.
std::optional<PciLink> link_of(const std::string& root, const std::string& address) {
  const std::string directory = root + "/sys/bus/pci/devices/" + address;
  const std::string kind = class_name(read_integer(directory + "/class").value_or(0));
  if (kind.empty()) return std::nullopt;
  const std::string path = sysfs::real_path(directory);
  // A bridge shows the link above it when it is the upper port of a switch, which is at an odd depth; root
  // ports and lower ports of a switch show the link below them, which is the row of the device there.
  if (kind == "bridge" && (depth(path) % 2 == 0 || !has_children(directory))) return std::nullopt;
  PciLink link;
  link.address = address;
  link.device_class = kind;
  link.name = sysfs::line(directory + "/vendor") + ":" + sysfs::line(directory + "/device");
  link.numa = static_cast<int>(read_integer(directory + "/numa_node").value_or(-1));
  link.speed_gt_s = speed(directory + "/current_link_speed");
  link.width = width(directory + "/current_link_width");
  link.max_speed_gt_s = speed(directory + "/max_link_speed");
  link.max_width = width(directory + "/max_link_width");
  if (std::isnan(link.width) && std::isnan(link.speed_gt_s))
    return std::nullopt;  // conventional PCI or a virtual function
  if (depth(path) > 0) {
    const std::string parent = path.substr(0, path.rfind('/'));
    link.max_speed_gt_s = smaller(link.max_speed_gt_s, speed(parent + "/max_link_speed"));
    link.max_width = smaller(link.max_width, width(parent + "/max_link_width"));
  }
  return link;
}

// PCI functions that two devices have in common on their ways to the root complex.
int shared_functions(const std::string& a, const std::string& b) {
  const auto end = static_cast<std::size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(std::min(a.size(), b.size())),
                    b.begin())
          .first -
      a.begin());
  const std::size_t slash = a.rfind('/', end);
  return slash == std::string::npos ? 0 : depth(a.substr(0, slash)) + 1;
}

// Data between a GPU and a NIC best stays below a bridge that both hang on; else within a NUMA domain.
void find_near_nics(PciLink& gpu, const Node& node, const std::string& root) {
  const std::string devices = root + "/sys/bus/pci/devices/", path = sysfs::real_path(devices + gpu.address);
  int best = 0;
  for (const Nic& nic : node.nics) {
    const int shared = nic.pci.empty() ? 0 : shared_functions(path, sysfs::real_path(devices + nic.pci));
    if (shared == 0 || shared < best) continue;
    if (shared > best) gpu.near_nics.clear();
    best = shared;
    gpu.near_nics.push_back(nic.name);
    gpu.near_by = "pci";
  }
  if (best > 0 || gpu.numa < 0) return;
  for (const Nic& nic : node.nics) {
    if (nic.pci.empty() || nic.numa != gpu.numa) continue;
    gpu.near_nics.push_back(nic.name);
    gpu.near_by = "numa";
  }
}

// "off" when the kernel drives none, "on DMA-FQ" with the domain types in use, empty when the system does not
// tell.
std::string iommu_state(const std::string& root) {
  if (!sysfs::exists(root + "/sys/class/iommu")) return {};
  if (sysfs::entries(root + "/sys/class/iommu").empty()) return "off";
  std::vector<std::string> types;
  for (const std::string& group : sysfs::numbered(root + "/sys/kernel/iommu_groups", "")) {
    types.push_back(sysfs::line(root + "/sys/kernel/iommu_groups/" + group + "/type"));
  }
  std::sort(types.begin(), types.end());
  const std::string joined = join_distinct(types);
  return joined.empty() ? "on" : "on " + joined;
}

std::string read_bytes(const std::string& path, std::size_t limit) {
  std::string bytes(limit, '\0');
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const ssize_t n = read(fd, bytes.data(), limit);
  close(fd);
  bytes.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return bytes;
}

std::uint32_t word_at(const std::string& config, std::size_t offset, std::size_t bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < bytes && offset + i < config.size(); ++i) {
    value |= std::uint32_t{static_cast<unsigned char>(config[offset + i])} << (8 * i);
  }
  return value;
}

// The ACS control register of a function (PCI Express Base Specification 7.7.11): extended capability 0x000d,
// offset 6.
std::optional<std::uint32_t> acs_control(const std::string& config) {
  std::size_t at = 0x100;
  for (int hops = 0; hops < 96 && at >= 0x100 && at + 8 <= config.size(); ++hops) {
    const std::uint32_t header = word_at(config, at, 4);
    if (header == 0 || header == 0xffffffffU) return std::nullopt;
    if ((header & 0xffff) == 0x000d) return word_at(config, at + 6, 2);
    at = header >> 20;
  }
  return std::nullopt;
}

// Redirection of peer requests or completions (bits 2 and 3) sends traffic between devices through the root
// complex. Only root reads that far into the configuration space; empty otherwise.
std::string acs_state(const std::string& root) {
  int capable = 0, redirecting = 0;
  const std::string devices = root + "/sys/bus/pci/devices";
  for (const std::string& address : sysfs::entries(devices)) {
    if (class_name(read_integer(devices + "/" + address + "/class").value_or(0)) != "bridge") continue;
    const auto control = acs_control(read_bytes(devices + "/" + address + "/config", 4096));
    if (!control) continue;
    ++capable;
    if ((*control & 0x0c) != 0) ++redirecting;
  }
  if (capable == 0) return {};
  return redirecting == 0 ? "off" : redirecting == capable ? "on" : "on for some bridges";
}

}  // namespace

void probe_pci(Node& node, const std::string& root) {
  for (const std::string& address : sysfs::entries(root + "/sys/bus/pci/devices")) {
    auto link = link_of(root, address);
    if (!link) continue;
    if (link->device_class == "display" || link->device_class == "accelerator")
      find_near_nics(*link, node, root);
    node.pci_links.push_back(std::move(*link));
  }
  node.iommu = iommu_state(root);
  node.acs = acs_state(root);
}

}  // namespace assay
