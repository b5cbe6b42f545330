// SPDX-License-Identifier: Apache-2.0
// --device and --share-gpus: the devices of the ranks of a launch, and the ranks without one.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "config/config.hpp"
#include "device/device.hpp"
#include "topology/gpu_place.hpp"
#include "topology/launch_check.hpp"
#include "transport/mpi_communicator.hpp"

namespace assay {

/// Data of a GPU for planning, and the working device on it.
struct GpuLook {
  double free_bytes = 0, sweep_rate = 0;
  std::shared_ptr<Device> device;
  std::string no_products = {};  ///< why it multiplies no matrices; empty where it does
};

/// The devices of this process (not of the node) beside the CPUs, of one backend.
struct AvailableDevices {
  std::string backend;                    ///< empty: none is available
  std::string pci_vendor;                 ///< DeviceBackend::pci_vendor
  std::vector<std::string> visible_gpus;  ///< UUIDs ("GPU-...", "MIG-...") in the order of the runtime
  std::vector<std::string> lost_gpus;     ///< GPUs that the runtime counts and cannot describe, a line each
  /// A first look at a GPU that was chosen: makes this process one of its users. Throws Error(resource) when
  /// others keep it from being used, Error(device) when it cannot be.
  std::function<GpuLook(const std::string& uuid)> look;
};

/// The agreed answer, as one rank needs it.
struct DeviceSelection {
  std::string kind = "host";              ///< or the backend
  std::string host;                       ///< of this rank, told apart from others of its name
  std::string gpu;                        ///< of this rank, by UUID
  std::vector<std::string> visible_gpus;  ///< of this rank
  std::vector<int> members;               ///< ranks of the launch that take part, ascending
  GpuLook look;                           ///< data of the GPU; without a device on a rank that takes no part
  bool parts_of_nodes = false;            ///< some ranks of a node take part, and some do not
  struct Note {
    std::string host;
    LaunchFinding finding;
  };
  std::vector<Note> notes;

  bool on_gpus() const { return kind != "host"; }
};

/// Assigns devices to the ranks of a launch. A GPU that fails at the first look or during set-up is a finding
/// of its node, and the selection is repeated without it: ranks keep working GPUs, and ranks without one take
/// no part. Everything here is collective on the whole launch, and all ranks get the same answer or the same
/// error.
class DeviceSelector {
 public:
  /// `members` are those that --only and --exclude leave. `available`: of the same backends on all ranks.
  DeviceSelector(MpiSession& mpi, const Config& config, std::vector<int> members,
                 std::vector<AvailableDevices> available);

  /// Throws Error(usage), or Error(device) when no GPU at all can be used.
  DeviceSelection select();

  /// Result of a set-up. `failed`: error of this rank's GPU; `ended`: the members agreed that the run is
  /// over. True when a GPU was left out and all ranks select and set up again.
  bool leave_out(const std::optional<Error>& failed, bool ended);

 private:
  void choose();
  bool leave_out(const std::vector<std::string>& troubles);
  std::optional<Error> look();
  std::vector<std::string> troubles_of_products();
  void leave_out_starved(const std::vector<OfferedDevices>& offered);
  void drop_hosts_without();
  void note(const std::string& host, const std::string& severity, const std::string& kind,
            const std::string& what);

  Communicator& launch_;
  const Config& config_;
  std::vector<int> members_;          ///< those that are left, and by their place here:
  std::vector<std::string> hosts_;    ///< one name for each node
  std::vector<VisibleGpus> visible_;  ///< without failed ones
  std::set<std::string> on_bus_;      ///< hosts with a GPU on the PCI bus
  std::size_t asked_;                 ///< members before any was left out
  AvailableDevices devices_;
  DeviceChoice choice_;
  std::vector<DeviceSelection::Note> notes_;
  std::string gpu_;  ///< that this rank has looked at
  GpuLook look_;
};

/// Collective on the whole launch: leaves those out that do not take part. Null for them, else the
/// communicator of those of this node.
std::unique_ptr<Communicator> keep_members(MpiSession& mpi, const DeviceSelection& selection);

}  // namespace assay
