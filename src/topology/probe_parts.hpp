// SPDX-License-Identifier: Apache-2.0
// The steps of probe_node. Each fills its part of the node from files below `root` and leaves what is not
// offered alone.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "topology/topology.hpp"

namespace assay {

/// Sockets, cores, hardware threads, NUMA domains, caches, allowed CPUs through hwloc. False when hwloc
/// cannot load.
bool probe_hwloc(Node& node);
/// The same from /sys/devices/system, for a `root` that hwloc does not look at.
void probe_sysfs_cpus(Node& node, const std::string& root);
/// Model, microcode, SMT, clock, governor, hypervisor.
void probe_cpu(Node& node, const std::string& root);
/// Kernel, command line, distribution, memory, huge pages, NUMA balancing, DMI identity, DIMMs, software,
/// environment.
void probe_system(Node& node, const std::string& root);
/// Memory limit and CPU quota along the process's own cgroup path, version 1 or 2.
void probe_cgroup(Node& node, const std::string& root);
/// Network interfaces and InfiniBand or RoCE ports.
void probe_nics(Node& node, const std::string& root);
/// PCIe links, IOMMU and access control (ACS).
void probe_pci(Node& node, const std::string& root);

/// Driver, firmware and highest rate of an interface from the running kernel's ethtool interface; empty or
/// NaN if not told.
struct EthtoolFacts {
  std::string driver, firmware;
  double max_rate_bytes_per_s = unsupported;
};
EthtoolFacts ethtool_facts(const std::string& interface);

/// Interfaces with an IPv4 address, or an IPv6 address that is valid beyond their link; below a `root` those
/// that the file /addressed names. nullopt where that is not known.
std::optional<std::set<std::string>> addressed_interfaces(const std::string& root);

/// Environment variables that change what is measured, from NAME=VALUE texts: NCCL_*, UCX_*, OMP_*,
/// OPENBLAS_* and those of OMPI_* that a person sets (not what the launcher writes for each process).
std::map<std::string, std::string> allowed_environment(const char* const* environment);

/// Distinct values in order of first appearance, joined by ",": one value on a healthy machine.
std::string join_distinct(const std::vector<std::string>& values);

}  // namespace assay
