// SPDX-License-Identifier: Apache-2.0
// What carries the messages of a case.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "suites/p2p/p2p_plan.hpp"
#include "transport/faulty_memory.hpp"
#include "transport/gpu_transports.hpp"
#include "transport/ucx_communicator.hpp"
#include "workload/payload_buffer.hpp"

namespace assay::p2p {

using namespace workload;

std::set<std::string> parts_of(const std::string& text, const char* separators);

/// With the faults of the run. Ranks are those of the world.
class Carrier {
 public:
  /// Collective over `group`, which outlives this object. Throws Error(mpi) on all its ranks where one cannot
  /// reach a partner.
  Carrier(const Spec& spec, const Shape& shape, const Schedule& schedule, Communicator& group,
          Context& context);

  Communicator& comm() const noexcept;
  /// Where messages lie: in the arena, but in host memory where UCX carries them past the GPUs.
  const PayloadBuffer& payload_buffer() const noexcept { return payload_buffer_; }
  /// The way to the arenas of the others; null but in one-sided modes, and where GPUs refuse it.
  RemoteMemory* remote() const noexcept { return remote_; }
  /// What the messages of any rank took. Collective over `group`.
  std::string path() const;

 private:
  void use_ucx(const Spec& spec, const Shape& shape, const Schedule& schedule, Context& context);
  void agree_that_tcp_reaches(const std::string& nic, const Context& context);
  std::string no_answer(const std::vector<int>& peers, const std::string& nic, const Context& context) const;
  void use_nccl(const Spec& spec, Context& context);
  void use_peers(const Spec& spec, Context& context);

  Communicator& world_;
  Communicator& group_;
  std::vector<std::byte> host_;
  PayloadBuffer payload_buffer_;
  std::unique_ptr<UcxCommunicator> ucx_;
  std::unique_ptr<Communicator> renumbered_;
  std::unique_ptr<PeerMemory> peers_;
  std::string peer_path_;
  RemoteMemory* remote_ = nullptr;
  std::unique_ptr<RemoteMemory> faulty_memory_;
  std::unique_ptr<Communicator> faulty_;
  std::vector<int> partners_;
};

}  // namespace assay::p2p
