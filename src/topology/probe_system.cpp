// SPDX-License-Identifier: Apache-2.0
#include <gnu/libc-version.h>
#include <hwloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <sstream>

#include "base/system.hpp"
#include "topology/probe_parts.hpp"
#include "topology/smbios.hpp"
#include "topology/sysfs.hpp"

namespace assay {
namespace {

// PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"
std::string distribution(const std::string& root) {
  std::istringstream lines(read_text(root + "/etc/os-release").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("PRETTY_NAME=")) continue;
    std::string value = sysfs::clean(line.substr(12));
    if (value.size() >= 2 && (value.front() == '"' || value.front() == '\''))
      value = value.substr(1, value.size() - 2);
    return value;
  }
  return {};
}

// The choice in brackets: "always [madvise] never" -> "madvise".
std::string chosen(const std::string& text) {
  const auto open = text.find('['), close = text.find(']');
  return open == std::string::npos || close == std::string::npos || close < open
             ? text
             : text.substr(open + 1, close - open - 1);
}

std::uint64_t meminfo_bytes(const std::string& meminfo, const std::string& key) {
  std::istringstream lines(meminfo);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key + ":")) continue;
    const double kib = sysfs::leading_number(line.substr(key.size() + 1));
    return kib > 0 ? static_cast<std::uint64_t>(kib) * 1024 : 0;
  }
  return 0;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    if (!text.empty()) text += ' ';
    text += part;
  }
  return text;
}

void probe_dmi(Node& node, const std::string& root) {
  const std::string id = root + "/sys/class/dmi/id/";
  const auto text = [&id](const char* name) { return firmware_text(sysfs::line(id + name)); };
  node.board = joined({text("sys_vendor"), text("product_name"), text("board_name")});
  node.bios = joined({text("bios_vendor"), text("bios_version"), text("bios_date")});
  SmbiosTables tables = parse_smbios(read_text(root + "/sys/firmware/dmi/tables/DMI").value_or(""));
  std::string uuid = sysfs::line(id + "product_uuid");
  for (char& c : uuid) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (!usable_uuid(uuid)) uuid = tables.system_uuid;
  if (!uuid.empty()) {
    node.id = uuid;
    node.id_source = "dmi";
  }
  node.dimms = std::move(tables.dimms);
  node.dimm_serials = std::move(tables.dimm_serials);
  node.memory_bandwidth_bytes_per_s = tables.memory_bandwidth_bytes_per_s;
}

void probe_software(Node& node, const std::string& root) {
  static constexpr std::array modules = {"mlx5_core", "mlx4_core", "ib_core", "bnxt_en", "bnxt_re",
                                         "ice",       "i40e",      "ixgbe",   "irdma",   "efa",
                                         "ena",       "hfi1",      "nvidia",  "amdgpu",  "nvidia_peermem",
                                         "gdrdrv",    "xpmem",     "lustre"};
  for (const char* module : modules) {
    const std::string directory = root + "/sys/module/" + module;
    if (!sysfs::exists(directory)) continue;
    const std::string version = sysfs::line(directory + "/version");
    node.software.edit()[std::string("module ") + module] = version.empty() ? "loaded" : version;
  }
  if (!root.empty()) return;
  const unsigned hwloc = hwloc_get_api_version();
  node.software.edit()["hwloc"] = std::to_string(hwloc >> 16) + "." + std::to_string((hwloc >> 8) & 0xff) +
                                  "." + std::to_string(hwloc & 0xff);
  node.software.edit()["glibc"] = gnu_get_libc_version();
  for (const auto& [key, value] : allowed_environment(environ)) node.software.edit()["env " + key] = value;
}

}  // namespace

std::map<std::string, std::string> allowed_environment(const char* const* environment) {
  static constexpr std::array wanted = {"NCCL_", "UCX_", "OMP_", "OPENBLAS_", "OMPI_"};
  // Open MPI's launcher tells each process who and where it is under the same prefix.
  static constexpr std::array launcher = {"OMPI_COMM_WORLD_",
                                          "OMPI_UNIVERSE_",
                                          "OMPI_APP_",
                                          "OMPI_COMMAND",
                                          "OMPI_ARGV",
                                          "OMPI_FIRST_",
                                          "OMPI_FILE_",
                                          "OMPI_NUM_",
                                          "OMPI_RESERVED_",
                                          "OMPI_MCA_ess",
                                          "OMPI_MCA_orte",
                                          "OMPI_MCA_pmix",
                                          "OMPI_MCA_prte",
                                          "OMPI_MCA_routed",
                                          "OMPI_MCA_plm",
                                          "OMPI_MCA_routed",
                                          "OMPI_MCA_initial_wdir",
                                          "OMPI_MCA_hnp",
                                          "OMPI_MCA_jobid",
                                          "OMPI_MCA_shmem_RUNTIME",
                                          "OMPI_MCA_mpi_oversubscribe",
                                          "OMPI_VERSION"};
  std::map<std::string, std::string> found;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string entry = *environment;
    const auto matches = [&entry](const char* prefix) { return entry.starts_with(prefix); };
    if (std::none_of(wanted.begin(), wanted.end(), matches) ||
        std::any_of(launcher.begin(), launcher.end(), matches))
      continue;
    const auto equals = entry.find('=');
    if (equals != std::string::npos)
      found[sysfs::clean(entry.substr(0, equals))] = sysfs::clean(entry.substr(equals + 1));
  }
  return found;
}

void probe_system(Node& node, const std::string& root) {
  node.kernel = sysfs::line(root + "/proc/sys/kernel/osrelease");
  node.kernel_cmdline = sysfs::line(root + "/proc/cmdline");
  node.os = distribution(root);
  node.numa_balancing = sysfs::line(root + "/proc/sys/kernel/numa_balancing");
  node.transparent_hugepages = chosen(sysfs::line(root + "/sys/kernel/mm/transparent_hugepage/enabled"));
  const std::string meminfo = read_text(root + "/proc/meminfo").value_or("");
  const std::uint64_t total = meminfo_bytes(meminfo, "MemTotal");
  if (total > 0) node.memory_bytes = total;
  // Kernels that bring memory up late leave the only domain's own count behind the machine's.
  if (node.numa.size() == 1)
    node.numa.edit().front().memory_bytes = std::max(node.numa.front().memory_bytes, total);
  node.memory_available_bytes = meminfo_bytes(meminfo, "MemAvailable");
  probe_dmi(node, root);
  probe_software(node, root);
}

}  // namespace assay
