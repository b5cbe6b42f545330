// SPDX-License-Identifier: Apache-2.0
#include "run/injection.hpp"

namespace assay {
namespace {

std::unique_ptr<Communicator> made_faulty(Communicator& inner, Injector& faults, int me) {
  std::vector<int> job_ranks(static_cast<std::size_t>(inner.size()));
  inner.all_gather(&me, job_ranks.data(), sizeof me);
  return std::make_unique<FaultyCommunicator>(inner, faults, std::move(job_ranks));
}

}  // namespace

Injection::Injection(const Parts& parts) : parts_(parts) {
  const auto& faults = parts.config.faults;
  if (faults.empty()) return;
  const RankPlace& me = parts.topology.me();
  injector_ = std::make_unique<Injector>(
      faults, parts.config.seed,
      Injector::Location{me.rank, parts.topology.my_node().hostname, me.node, me.local_rank,
                         parts.entities.device_of_rank(me.rank), parts.run_start_s},
      parts.device);
  world_ = made_faulty(parts.world, *injector_, me.rank);
  node_ = made_faulty(parts.node, *injector_, me.rank);
  if (parts.leaders != nullptr) leaders_ = made_faulty(*parts.leaders, *injector_, me.rank);
}

}  // namespace assay
