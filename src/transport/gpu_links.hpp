// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>

#include "transport/gpu_transports.hpp"

namespace assay {

enum class GpuDirect { automatic, on, off };

/// Transports of the ranks when they measure GPUs: MPI, made fit for GPU memory once, and NCCL
/// communicators, made where they are first needed (that takes a second) and kept. Ends before the
/// communicators it was given, and before the device.
class GpuLinks {
 public:
  enum class Scope { world, node, leaders };

  /// Collective over `world`. MPI is given GPU memory itself where it says that it may (`automatic`) or the
  /// user does (`on`), and test_gpu_direct has shown it; else messages go by way of the host. `leaders` is
  /// null but on them.
  GpuLinks(const GpuTransports& transports, Device& device, Communicator& world, Communicator& node,
           Communicator* leaders, GpuDirect direct, supervisor::Heartbeat* heartbeat);

  Communicator& world() const noexcept { return *staged_[0]; }
  Communicator& node() const noexcept { return *staged_[1]; }
  Communicator* leaders() const noexcept { return staged_[2].get(); }

  const GpuTransports& transports() const noexcept { return transports_; }
  supervisor::Heartbeat* heartbeat() const noexcept { return heartbeat_; }
  /// Collective over the ranks of the scope; made anew when it was given up in an earlier case. Throws
  /// Error(mpi) on all of them. `deadline_s`: of the case; it is later by what making communicators has taken
  /// of this case, which may be more than the case has itself.
  Communicator& nccl(Scope scope, double deadline_s);

 private:
  const GpuTransports& transports_;
  Device& device_;
  supervisor::Heartbeat* heartbeat_;
  std::array<Communicator*, 3> plain_;
  std::array<std::unique_ptr<Communicator>, 3> staged_, nccl_;
  double deadline_s_ = 0, set_up_took_s_ = 0;  ///< of the case that asked last
};

}  // namespace assay
