// SPDX-License-Identifier: Apache-2.0
// Messages over UCX directly, so that the network devices are chosen by the suite and not by MPI.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "supervisor/heartbeat.hpp"
#include "transport/forwarding_communicator.hpp"
#include "transport/remote_memory.hpp"

namespace assay {

/// Transfers go over UCX (tag messages of UCP); everything else is handed to the communicator it stands
/// before. UCX makes progress only inside of these calls, and a send may be complete before its message has
/// left: before a rank goes elsewhere, its partners must have answered all but a last small message.
class UcxCommunicator : public ForwardingCommunicator {
 public:
  struct Settings {
    std::string devices;     ///< as in UCX_NET_DEVICES; empty: what the environment says, all by default
    std::string transports;  ///< as in UCX_TLS; empty: likewise
    bool yield = false;      ///< ranks share cores: give the core away where there is nothing to do
    supervisor::Heartbeat* heartbeat = nullptr;  ///< where calls are marked
    bool one_sided = false;                      ///< `expose` will be called
    /// By rank of `world`, all that messages go to, each of which has this one among its own: only their
    /// addresses are kept. Nothing: all of the group.
    std::optional<std::vector<int>> partners = {};
  };

  /// UCX of this build, e.g. "1.13.1"; empty where it has none.
  static std::string version();

  /// One context and one worker. Collective over `group`, whose ranks can talk to each other afterwards, by
  /// the numbers they have in `world`. Throws Error(mpi) where UCX cannot be had with these settings, on all
  /// ranks of the group.
  static std::unique_ptr<UcxCommunicator> make(Communicator& world, Communicator& group,
                                               const Settings& settings);

  std::string_view transport() const noexcept override { return "ucx"; }
  /// Complete at once: the requests that this class waits for are UCX's own.
  void iall_reduce(void* data, std::size_t count, DataType type, ReduceOp op, Request& request) override {
    Communicator::iall_reduce(data, count, type, op, request);
  }
  void ireduce_scatter(const void* in, void* out, std::size_t count_per_rank, DataType type, ReduceOp op,
                       Request& request) override {
    Communicator::ireduce_scatter(in, out, count_per_rank, type, op, request);
  }
  /// Makes endpoints to those that have none. Empty when all of `peers` can be reached, else why not: an
  /// error is for all ranks to agree on, so neither this nor `silent` throws.
  virtual std::string connect(std::span<const int> peers) = 0;
  /// Exchanges a byte with each of `peers`, which do the same: an endpoint alone does not tell whether
  /// anybody answers. Those that did not within `seconds`, or with whom it failed.
  virtual std::vector<int> silent(std::span<const int> peers, double seconds) = 0;
  /// Lets the ranks of `group` read and write `memory` of each of them, until this communicator ends; needs
  /// Settings::one_sided. Collective over `group`. Throws Error(mpi) where UCX cannot.
  virtual RemoteMemory& expose(Communicator& group, std::span<std::byte> memory) = 0;
  /// What carries the messages to `peer`, e.g. "tcp/eth0" or "posix/memory+cma/memory"; "requested:..." where
  /// this UCX does not say. Known for certain once a message was exchanged.
  virtual std::string path_to(int peer) const = 0;

 protected:
  using ForwardingCommunicator::ForwardingCommunicator;
};

}  // namespace assay
