// SPDX-License-Identifier: Apache-2.0
// What carries data between the GPUs of a backend (device/backend.hpp), as this build can.
#pragma once

#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.hpp"
#include "supervisor/heartbeat.hpp"
#include "transport/communicator.hpp"
#include "transport/remote_memory.hpp"

namespace assay {

struct GpuSettings {
  /// now_s() at which a wait for other GPUs is given up.
  double deadline_s = std::numeric_limits<double>::infinity();
  double set_up_s = 0;  ///< that a step of setting up may take, whenever the deadline is; 0: until then
  supervisor::Heartbeat* heartbeat = nullptr;  ///< where calls are marked
};

/// Who moves bytes from one GPU to another: the copy engines, or a kernel.
enum class CopyEngine { dma, kernel };

/// The arenas of the GPUs of a node, open to each other.
class PeerMemory : public RemoteMemory {
 public:
  /// Why this rank cannot reach the memory of another one, which it names; empty where it reaches all of
  /// them.
  virtual const std::string& refused() const noexcept = 0;
  virtual std::string path() const = 0;  ///< backend and engine: "<backend>/ce"
};

class GpuTransports {
 public:
  virtual ~GpuTransports() = default;

  /// "2.28.9"; empty where NCCL cannot be used, with the reason in `why`.
  virtual std::string nccl_version(std::string& why) const = 0;
  /// A communicator over NCCL for memory of the device's arena. Whatever lies elsewhere (texts, control
  /// messages, the times of ranks) goes over `bootstrap`, which outlives it. Collective. Throws Error(mpi) on
  /// all ranks, the ranks that share a GPU among the reasons.
  virtual std::unique_ptr<Communicator> make_nccl(Communicator& bootstrap, Device& device,
                                                  const GpuSettings& settings) const = 0;

  /// Stands before `below`, which takes host memory only, and lets buffers in the device's arena be used:
  /// copied to pinned host memory and back, large ones in pieces that follow each other; with `direct`
  /// messages are handed to `below` where they are. What lies elsewhere is handed through. Waits for messages
  /// are marked in `heartbeat`.
  virtual std::unique_ptr<Communicator> make_staged(Communicator& below, Device& device, bool direct,
                                                    supervisor::Heartbeat* heartbeat) const = 0;

  /// Opens the arenas of the ranks of `group`, which share a node. Collective over it. Where the GPUs refuse,
  /// `refused` says so.
  virtual std::unique_ptr<PeerMemory> make_peer(Communicator& world, Communicator& group, Device& device,
                                                CopyEngine engine, const GpuSettings& settings) const = 0;
};

/// For GPUs of a backend; null where this build has none.
const GpuTransports* gpu_transports(std::string_view backend);

/// For `assay list`.
struct GpuTransportInfo {
  std::string name;
  bool built = false;
  std::string detail;  ///< what it is, or why it is not built
};
/// Of all backends.
std::vector<GpuTransportInfo> gpu_transport_infos();

}  // namespace assay
