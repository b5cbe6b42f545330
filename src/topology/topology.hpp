// SPDX-License-Identifier: Apache-2.0
// What the job runs on, as probed once by each node's leader and agreed by all ranks.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/shared.hpp"

namespace assay {

inline constexpr double unsupported = std::numeric_limits<double>::quiet_NaN();

struct NumaDomain {
  int os_index = 0;
  std::vector<int> cpus;
  std::uint64_t memory_bytes = 0;
};

struct Cache {
  int level = 0;
  std::uint64_t bytes = 0;
  std::vector<int> cpus;
};

struct Nic {
  std::string name;       ///< eth0, mlx5_0:1
  std::string kind;       ///< ethernet|infiniband|roce|loopback
  std::string id_source;  ///< of Node::nic_ids: guid or mac
  std::string state;      ///< up|down|...
  std::string driver, firmware, pci;
  double rate_bytes_per_s = unsupported;      ///< link rate as negotiated
  double max_rate_bytes_per_s = unsupported;  ///< capability, if known
  int numa = -1;
  bool virtual_device = false;  ///< nothing but software behind it, or a virtual function of a listed port
  bool addressed = true;  ///< of an interface: has an IP address beyond its link, or that was not looked at
  bool bridge = false;
  std::vector<std::string> lower;  ///< interfaces that it combines or rides on: ports of a bond, under a VLAN
  std::string
      netdev;  ///< of an InfiniBand or RoCE port: the network interface on it, listed as a NIC of its own
  std::string leaf, leaf_port, rack,
      rail;  ///< switch it hangs on, ...: only from --topology (fabric.hpp), else empty
};

struct PciLink {
  std::string address, device_class, name;
  double speed_gt_s = unsupported, max_speed_gt_s = unsupported;
  double width = unsupported, max_width = unsupported;
  int numa = -1;                       ///< domain it hangs on, -1 unknown
  std::vector<std::string> near_nics;  ///< of a GPU or accelerator: the NICs with the shortest way to it
  std::string
      near_by;  ///< what they share: "pci" (a bridge below the root complex), "numa", or empty: nothing known
};

struct Dimm {
  std::string slot, part, manufacturer;
  double bytes = unsupported, speed_mt_s = unsupported, configured_mt_s = unsupported;
};

/// An NVIDIA GPU as NVML describes it; empty and NaN: unsupported. Its UUID and serial number are in Node.
struct Gpu {
  /// By which the driver and the GPU's name know it; -1: its place in the list. Of a GPU that only its own
  /// ranks see it is a guess: the next hidden number in the order of ranks.
  int number = -1;
  std::string name, vbios, part;
  std::string pci;                                  ///< as the kernel writes it: 0000:17:00.0
  std::string compute;                              ///< capability, "9.0"
  std::string ecc, mig, persistence, compute_mode;  ///< "on", "off", "on, off after a reset"
  double memory_bytes = unsupported, sm_clock_max_hz = unsupported, memory_clock_max_hz = unsupported;
  double memory_bus_bits = unsupported, shader_cores = unsupported;
  double power_limit_w = unsupported;  ///< as enforced
  double power_limit_default_w = unsupported, power_limit_max_w = unsupported;
  double pcie_generation = unsupported;  ///< when looked at: an idle GPU may slow its link down
  double pcie_generation_max = unsupported, pcie_width = unsupported, pcie_width_max = unsupported;
  double nvlinks = unsupported, nvlinks_up = unsupported;
  double nvlink_rate_bytes_per_s = unsupported;  ///< of one link, one way
  std::vector<std::string> nvlink_ends;  ///< of each link that is up: "switch", the PCI address of a GPU
  std::string fabric, fabric_clique;     ///< registration with the NVLink switches: "completed"
  std::string fabric_trouble;            ///< "degraded bandwidth, route unhealthy"
  std::string recovery_action;           ///< that the driver wants: "none", "reset", "reboot", ...
  std::string sram_threshold;            ///< of errors of on-chip memory: "exceeded" or "kept"
  int numa = -1;
};

/// Lists that equal nodes have in common are shared by them; what differs from node to node is apart.
struct Node {
  std::string hostname, id, id_source;
  std::string cpu_model, cpu_vendor, microcode, kernel, kernel_cmdline, os, governor, board, bios, hypervisor;
  std::string iommu, acs, numa_balancing, transparent_hugepages, scaling_driver;
  int sockets = 0, cores = 0, pus = 0;  ///< of the machine, not of the mask
  bool smt = false;
  double max_clock_hz = unsupported;
  Shared<std::vector<std::vector<int>>> core_pus;  ///< hardware threads of each physical core
  Shared<std::vector<std::vector<int>>> socket_pus;
  Shared<std::vector<int>>
      allowed_cpus;  ///< by the cgroup's cpuset, before any binding; empty where unknown (then all)
  Shared<std::vector<NumaDomain>> numa;
  Shared<std::vector<Cache>> caches;  ///< levels 2 and above
  Shared<std::vector<Nic>> nics;
  Shared<std::vector<PciLink>> pci_links;
  Shared<std::vector<Dimm>> dimms;
  std::vector<std::string> nic_ids,
      dimm_serials;               ///< GUID or MAC of each of nics, serial number of each of dimms
  Shared<std::vector<Gpu>> gpus;  ///< in the order of the driver, which goes by PCI address
  std::vector<std::string> gpu_uuids,
      gpu_serials;                     ///< of each of gpus; those that only ranks know have no serial
  std::vector<std::string> gpus_lost;  ///< those that the driver counts and that do not answer, a line each
  std::vector<int> gpus_hidden;        ///< numbers of those that it counts and keeps from this job (cgroup)
  std::string gpu_trouble;             ///< why NVML cannot be used although it is installed; empty: none
  std::uint64_t memory_bytes = 0, memory_available_bytes = 0;
  double cgroup_limit_bytes = unsupported, cgroup_used_bytes = unsupported;
  double cpu_quota_cores = unsupported;               ///< cgroup v1 or v2
  double memory_bandwidth_bytes_per_s = unsupported;  ///< from DIMM channels and speed in DMI
  Shared<std::map<std::string, std::string>>
      software;  ///< library and driver versions, environment by allow-list

  /// Empty where it has none.
  std::string id_of(const Nic& nic) const;      ///< of one of `nics`
  std::string gpu_uuid(std::size_t gpu) const;  ///< of that of `gpus`
  std::string gpu_serial(std::size_t gpu) const;
  int gpu_of(const std::string& uuid) const noexcept;  ///< index into gpus; -1: none
  bool is_slice(std::size_t gpu) const;                ///< of a GPU in MIG mode, which is listed, too
  std::size_t whole_gpus() const;                      ///< those of gpus that are no slices
  std::string gpu_name(std::size_t gpu) const;         ///< of that of `gpus` below the node: "gpu3"
  /// Known from a rank that may use it alone, and no part of a GPU that NVML describes.
  bool unseen_by_nvml(std::size_t gpu) const;
  std::uint64_t llc_bytes_total() const noexcept;  ///< sum of last-level caches
  std::uint64_t llc_bytes_of(
      const std::vector<int>& cpus) const noexcept;          ///< of the last-level caches these CPUs share
  int numa_of(const std::vector<int>& cpus) const noexcept;  ///< the domain holding all of them, or -1
};

/// Where a rank runs.
struct RankPlace {
  int rank = 0;
  int node = 0;  ///< index into Topology::nodes
  int local_rank = 0, local_size = 1;
  Shared<std::vector<int>> mask;  ///< CPUs the launcher allowed
  Shared<std::vector<int>> cpus;  ///< its share of them: what it measures with, one per thread
  int threads = 1;
  bool shares_cpus = false;   ///< a core of its share belongs to other ranks too (oversubscribed)
  int numa = -1;              ///< domain holding all its cpus, or -1
  int gpu = -1;               ///< index into Node::gpus of what it measures with; -1: the host device
  bool shares_gpu = false;    ///< other ranks measure with it too (--share-gpus)
  double gpu_free_bytes = 0;  ///< of its memory, before this run took any
  double gpu_sweep_rate = 0;  ///< B/s of a short sweep over its memory, measured at the start; 0: unknown
};

/// Nodes with the same CPUs and caches, shared by their ranks in the same way: one of them, and how many
/// there are.
struct NodeKind {
  int node = 0;
  std::int64_t count = 1;
};

struct Topology {
  std::vector<Node> nodes;       ///< in order of their lowest rank
  std::vector<RankPlace> ranks;  ///< by rank
  int self = 0;
  std::string device_kind = "host";  ///< "host" or the backend: what the ranks measure
  std::string no_products;           ///< why the devices multiply no matrices; empty where they do
  /// Libraries that at least one rank does not find -> why, with the name of its host unless no rank finds it
  /// (Suite::lacks).
  std::map<std::string, std::string> lacks = {};

  bool measures_gpus() const { return device_kind != "host"; }
  const RankPlace& me() const { return ranks[static_cast<std::size_t>(self)]; }
  const Node& my_node() const { return nodes[static_cast<std::size_t>(me().node)]; }
  /// Ranks by node, made by index_ranks(); empty before its call.
  std::vector<std::vector<int>> node_ranks;

  /// Fills node_ranks: call it once `nodes` and `ranks` are final. Without it ranks_of() walks all ranks.
  void index_ranks();
  std::vector<int> ranks_of(int node) const;
  std::size_t rank_count(int node) const;  ///< of ranks_of
  /// Made by index_kinds(); empty before its call.
  std::vector<NodeKind> node_kinds;

  /// Fills node_kinds: call it once the CPUs of all ranks are final.
  void index_kinds();
  /// For what is planned from CPUs and caches: a cluster has few kinds. Without index_kinds() every node is
  /// one.
  std::vector<NodeKind> kinds() const;
  int max_local_size() const;
  std::int64_t ranks_up_to(int per_node) const;  ///< at most so many of each node, of all nodes together
  /// Ranks that a case measures: all at once, or by turns at most `turns` of each node.
  std::int64_t measured_ranks(bool together, int turns) const {
    return together ? size() : ranks_up_to(turns);
  }
  std::set<int> cpus_of(const std::vector<int>& of_ranks) const;  ///< that these ranks measure with
  int size() const { return static_cast<int>(ranks.size()); }
};

/// This node as this process sees it. `root` is prefixed to /sys, /proc and /etc for tests ("" = the real
/// system); hwloc is asked only for the real one or for HWLOC_XMLFILE.
Node probe_node(const std::string& root = "");

/// As many nodes like the only one of `topology`, named node001, node002, ..., with as many ranks each.
/// Throws Error(usage) when it has several or `count` is less than one.
Topology multiplied(const Topology& topology, std::int64_t count);

/// Shares the allowed CPUs of a node among its ranks: ranks with equal masks split them evenly by physical
/// core; a rank with a mask of its own keeps it; the CPU quota caps the threads. `threads` > 0 overrides.
/// Pure. `masks` and the result are by local rank.
struct Share {
  std::vector<int> cpus;
  bool shared = false;
};
std::vector<Share> share_cpus(const Node& node, const std::vector<std::vector<int>>& masks, int threads);

Json to_json(const Node& node);
Node node_from_json(const Json& json);
/// The difference of a description to another: fields that differ, in lists of parts item by item. Nodes of a
/// cluster are so much alike that this is a twentieth of it.
Json differences(const Json& json, const Json& like);
/// The node whose description differs from that of `like` so. A whole description is taken as it is.
Node with_differences(const Node& like, const Json& json);

/// Reads the descriptions of many nodes. Lists that differ from those of `like` in the same way are kept
/// once.
class NodeReader {
 public:
  explicit NodeReader(Node like) : like_(std::move(like)) {}
  const Node& like() const noexcept { return like_; }
  Node read(const Json& differences);

 private:
  Node like_;
  std::map<std::string, std::shared_ptr<const void>> lists_;  ///< by name and difference
};

}  // namespace assay
