// SPDX-License-Identifier: Apache-2.0
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <sstream>

#include "base/system.hpp"
#include "topology/probe_parts.hpp"
#include "topology/sysfs.hpp"

namespace assay {
namespace {

// All values of one key of /proc/cpuinfo, one per hardware thread.
std::vector<std::string> cpuinfo_values(const std::string& cpuinfo, const std::string& key) {
  std::vector<std::string> values;
  std::istringstream lines(cpuinfo);
  for (std::string line; std::getline(lines, line);) {
    const auto colon = line.find(':');
    if (colon != std::string::npos && sysfs::clean(line.substr(0, colon)) == key) {
      values.push_back(sysfs::clean(line.substr(colon + 1)));
    }
  }
  return values;
}

std::string first_or_empty(const std::vector<std::string>& values) {
  return values.empty() ? std::string{} : values.front();
}

// Signature of the hypervisor that runs this very process ("KVMKVMKVM", "VMwareVMware").
std::string hypervisor_signature() {
#if defined(__x86_64__) || defined(__i386__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  __cpuid(0x40000000U, a, b, c, d);
  char text[13] = {};
  std::memcpy(text, &b, 4);
  std::memcpy(text + 4, &c, 4);
  std::memcpy(text + 8, &d, 4);
  return sysfs::clean(text);
#else
  return {};
#endif
}

// Words of the firmware of virtual machines.
constexpr std::array virtual_firmware = {"KVM",
                                         "QEMU",
                                         "VMware",
                                         "OpenStack",
                                         "KubeVirt",
                                         "Amazon EC2",
                                         "Google Compute Engine",
                                         "Alibaba Cloud ECS",
                                         "Virtual Machine",  // Hyper-V
                                         "VirtualBox",
                                         "Parallels",
                                         "BHYVE",
                                         "Bochs",
                                         "Apple Virtualization",
                                         "Xen"};

// By what firmware tells to systems without a flag for it (Arm): the device tree, else DMI.
std::string hypervisor_of_firmware(const std::string& root) {
  const std::string names = read_text(root + "/proc/device-tree/hypervisor/compatible").value_or("");
  // The first of several, each of which ends with a zero.
  if (!names.empty()) return sysfs::clean(names.substr(0, names.find('\0')));
  const std::string id = root + "/sys/class/dmi/id/", product = sysfs::line(id + "product_name");
  if (product.find(".metal") != std::string::npos) return "none";  // of Amazon EC2
  const std::string words = product + "\n" + sysfs::line(id + "sys_vendor") + "\n" +
                            sysfs::line(id + "board_vendor") + "\n" + sysfs::line(id + "bios_vendor");
  for (const char* word : virtual_firmware)
    if (words.find(word) != std::string::npos) return word;
  return {};
}

// "none" on bare metal, empty where the system does not tell.
std::string hypervisor(const std::string& cpuinfo, const std::string& root) {
  const std::string xen = sysfs::line(root + "/sys/hypervisor/type");
  if (!xen.empty()) return xen;
  const std::string flags = first_or_empty(cpuinfo_values(cpuinfo, "flags"));
  if (flags.empty()) return hypervisor_of_firmware(root);
  if ((" " + flags + " ").find(" hypervisor ") == std::string::npos) return "none";
  const std::string signature = root.empty() ? hypervisor_signature() : std::string{};
  return signature.empty() ? "unknown" : signature;
}

void probe_frequency(Node& node, const std::string& root) {
  const std::string directory = root + "/sys/devices/system/cpu/cpufreq";
  std::vector<std::string> governors, drivers;
  for (const std::string& policy : sysfs::numbered(directory, "policy")) {
    const std::string path = directory + "/" + policy;
    governors.push_back(sysfs::line(path + "/scaling_governor"));
    drivers.push_back(sysfs::line(path + "/scaling_driver"));
    const double khz = sysfs::number(path + "/cpuinfo_max_freq");
    if (khz > 0 && !(node.max_clock_hz >= khz * 1e3)) node.max_clock_hz = khz * 1e3;
  }
  node.governor = join_distinct(governors);
  node.scaling_driver = join_distinct(drivers);
}

bool several_threads_per_core(const Node& node) {
  return std::any_of(node.core_pus.begin(), node.core_pus.end(),
                     [](const auto& pus) { return pus.size() > 1; });
}

}  // namespace

void probe_cpu(Node& node, const std::string& root) {
  const std::string cpuinfo = read_text(root + "/proc/cpuinfo").value_or("");
  const std::string model = first_or_empty(cpuinfo_values(cpuinfo, "model name"));
  const std::string vendor = first_or_empty(cpuinfo_values(cpuinfo, "vendor_id"));
  if (!model.empty()) node.cpu_model = model;
  if (!vendor.empty()) node.cpu_vendor = vendor;
  if (node.cpu_model.empty()) {  // Arm tells numbers only
    const std::string part = first_or_empty(cpuinfo_values(cpuinfo, "CPU part"));
    if (!part.empty())
      node.cpu_model =
          "implementer " + first_or_empty(cpuinfo_values(cpuinfo, "CPU implementer")) + " part " + part;
  }
  node.microcode = join_distinct(cpuinfo_values(cpuinfo, "microcode"));
  if (node.microcode.empty())
    node.microcode = sysfs::line(root + "/sys/devices/system/cpu/cpu0/microcode/version");
  const auto active = read_integer(root + "/sys/devices/system/cpu/smt/active");
  node.smt = active ? *active != 0 : several_threads_per_core(node);
  node.hypervisor = hypervisor(cpuinfo, root);
  probe_frequency(node, root);
}

}  // namespace assay
