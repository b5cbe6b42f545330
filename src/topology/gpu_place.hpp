// SPDX-License-Identifier: Apache-2.0
// Who measures with which GPU, decided once for the whole launch from what every process may use.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "base/shared.hpp"

namespace assay {

/// UUIDs of the GPUs that a process may use.
using VisibleGpus = Shared<std::vector<std::string>>;

/// What a rank tells of its devices before they are chosen.
struct OfferedDevices {
  struct OfBackend {
    VisibleGpus gpus;
    std::vector<std::string> lost;  ///< GPUs that the runtime counts and cannot describe, a line each
    bool on_bus = false;            ///< a GPU of its maker is on the PCI bus
  };
  std::string host;
  double quota_cores = 0;            ///< of its cgroup; NaN: none
  std::vector<OfBackend> available;  ///< by backend of this build
  int leader = 0;                    ///< lowest rank of those that share its node's memory, by MPI
};
std::string to_text(const OfferedDevices& offered);
/// Of the ranks `of`; `texts` by rank. Lists that ranks have in common are kept once.
std::vector<OfferedDevices> offered_devices(const std::vector<std::string>& texts,
                                            const std::vector<int>& of);

/// The node of each rank: the name of its host, of which further nodes get "~2", "~3", ...
std::vector<std::string> distinct_hosts(const std::vector<OfferedDevices>& offered);

/// The GPU of each local rank by UUID, empty: none is left for it. `visible` has, by local rank, the UUIDs
/// that the process may use, in its own order (none: it sees no GPU). Ranks that their launcher bound to
/// exactly one GPU keep it; of the others each takes the first of its list that is free, so that local rank i
/// has the i-th where all see all. With `share` those that got none are dealt out evenly.
std::vector<std::string> place_on_gpus(const std::vector<std::vector<std::string>>& visible, bool share);

/// Which of several backends the ranks of a launch take: the first of which any of them has seen a GPU,
/// working or not, else the first. `seen`: by rank and backend.
std::size_t agreed_backend(const std::vector<std::vector<bool>>& seen);

struct DeviceWish {
  std::string device = "auto";  ///< --device: auto, host, or a kind of GPUs
  bool share_gpus = false;      ///< --share-gpus
  std::string backend = {};     ///< the kind of GPUs that is offered; empty: none is built
};

/// What the ranks of a launch measure with.
struct DeviceChoice {
  struct Note {
    std::string host, severity, kind, text;  ///< as in LaunchFinding
  };
  std::string kind = "host";     ///< or the backend
  std::vector<std::string> gpu;  ///< by rank: UUID; empty: none
  std::vector<bool> takes_part;  ///< by rank: false for those beyond the GPUs of their node
  std::vector<Note> notes;

  bool on_gpus() const { return kind != "host"; }
};

/// `hosts` (distinct_hosts) and `visible` by rank, `on_bus`: hosts that have a GPU on their PCI bus, whether
/// it works or not.
/// Where at least half of the hosts have a GPU that a rank can use, the others take no part and are noted.
/// Pure, so that all ranks come to the same. Throws Error(usage) when a backend is asked for where it cannot
/// be had.
DeviceChoice choose_devices(const std::vector<std::string>& hosts, const std::vector<VisibleGpus>& visible,
                            const DeviceWish& wish, const std::set<std::string>& on_bus = {});

/// Whether a device of class display or accelerator of `vendor` ("0x10de"; none if empty) is on the PCI bus.
/// `root`: of sysfs ("/sys").
bool has_gpu_on_bus(const std::string& root, const std::string& vendor);

}  // namespace assay
