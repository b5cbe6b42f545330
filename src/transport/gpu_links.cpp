// SPDX-License-Identifier: Apache-2.0
#include "transport/gpu_links.hpp"

#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "transport/gpu_direct.hpp"

namespace assay {
namespace {

constexpr std::size_t proof_bytes = std::size_t{8} << 20;

/// What a step of setting NCCL up may take whatever its case may: it grows with the ranks, and comes once.
double set_up_seconds(int ranks) noexcept { return 10 + 0.05 * ranks; }

/// Whether MPI is given GPU memory.
bool goes_direct(GpuDirect wish, Communicator& world, Device& device) {
  if (wish == GpuDirect::off) return false;
  // The query is no proof, and trying without it ends in a segmentation fault.
  const bool said = world.min(mpi_says_cuda() ? 1.0 : 0.0) > 0;
  if (wish == GpuDirect::automatic && !said) return false;
  if (world.min(static_cast<double>(device.arena().size())) < static_cast<double>(proof_bytes)) return false;
  return test_gpu_direct(world, device).empty();
}

}  // namespace

GpuLinks::GpuLinks(const GpuTransports& transports, Device& device, Communicator& world, Communicator& node,
                   Communicator* leaders, GpuDirect direct, supervisor::Heartbeat* heartbeat)
    : transports_(transports), device_(device), heartbeat_(heartbeat), plain_{&world, &node, leaders} {
  const bool directly = goes_direct(direct, world, device);
  for (std::size_t i = 0; i < plain_.size(); ++i)
    if (plain_[i] != nullptr) staged_[i] = transports_.make_staged(*plain_[i], device_, directly, heartbeat_);
}

Communicator& GpuLinks::nccl(Scope scope, double deadline_s) {
  const auto which = static_cast<std::size_t>(scope);
  if (std::exchange(deadline_s_, deadline_s) != deadline_s) set_up_took_s_ = 0;
  if (plain_[which] == nullptr)
    throw Error(ErrorKind::internal, "NCCL is used on a rank outside the communicator");
  auto& comm = nccl_[which];
  if (plain_[which]->min(comm != nullptr && comm->usable() ? 1.0 : 0.0) == 0) {
    comm.reset();
    const double begin = now_s();
    GpuSettings settings;
    settings.deadline_s = deadline_s + set_up_took_s_;
    settings.set_up_s = set_up_seconds(plain_[which]->size());
    settings.heartbeat = heartbeat_;
    comm = transports_.make_nccl(*plain_[which], device_, settings);
    set_up_took_s_ += now_s() - begin;
  }
  comm->give_up_at(deadline_s + set_up_took_s_);
  return *comm;
}

}  // namespace assay
